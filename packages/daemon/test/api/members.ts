import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TSchema } from 'typebox'
import Value from 'typebox/value'
import { expect } from 'vitest'
import { type CleanUp, sharedByFile, type TestDaemon, testDaemon } from '../support/daemon.ts'
import { gguf, writeFiles } from '../support/models.ts'

export const fits = (schema: TSchema, value: unknown): void => expect([...Value.Errors(schema, value)]).toEqual([])
export const blobFile = (api: TestDaemon, digest: string): string =>
  join(api.root, 'blobs/sha256', digest.slice(7, 9), digest.slice(9))
export function spoil(path: string, bytes: string | Buffer): void {
  rmSync(path)
  writeFileSync(path, bytes)
}

export interface Imported {
  readonly api: TestDaemon
  readonly indexDigest: string
  readonly manifests: readonly string[]
}

/** Imports a repository with members q4_0, q4_k_m and q8_0; another number gives other bytes. */
async function importMembers(api: TestDaemon, as = 'me/model', number = 0): Promise<Imported> {
  const files = {
    'm-q4_0.gguf': gguf(1000, number * 3 + 1),
    'm-q4_k_m.gguf': gguf(1000, number * 3 + 2),
    'm-q8_0.gguf': gguf(1000, number * 3 + 3)
  }
  const job = await api.import([writeFiles(join(api.folder, `m${number}`), files)], as)
  return { api, indexDigest: job.result!.indexDigest!, manifests: job.result!.manifests }
}

/** A daemon of the test's own. */
export const imported = async (cleanUp?: CleanUp): Promise<Imported> => importMembers(await testDaemon({}, cleanUp))

/** For tests that change nothing: me/model, and the same as tagged/model with the tag stable. */
export const sharedMembers = () =>
  sharedByFile(async (cleanUp) => {
    const made = await imported(cleanUp)
    await importMembers(made.api, 'tagged/model')
    const tags = new Map([['stable', made.indexDigest as never]])
    await made.api.running.context.repos.update({ ns: 'tagged', name: 'model' }, async (state) => ({ ...state!, tags }))
    return made
  })

/** For tests that damage a repository of their own. */
export function ownRepositories(): () => Promise<Imported & { readonly ref: string }> {
  const workshop = sharedByFile((cleanUp) => testDaemon({}, cleanUp))
  let harmed = 0
  return async () => {
    const name = `own${++harmed}/model`
    return { ...(await importMembers(await workshop(), name, harmed)), ref: `svc:///${name}` }
  }
}
