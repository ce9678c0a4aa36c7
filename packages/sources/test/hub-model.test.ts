import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type OwnedModels, openLibrary } from '@svc/library'
import { hubSource } from '@svc/sources/hub'
import { type FakeHub, startFakeHub } from '@svc/testkit/fake-hub'
import { expect, onTestFinished, test } from 'vitest'

const REPO = 'Org/Model-GGUF'
const gguf = (fill: number): Buffer =>
  Buffer.concat([Buffer.from(`GGUF\x03${'\0'.repeat(19)}`, 'latin1'), Buffer.alloc(100_000, fill)])

async function hubWith(more: Partial<Parameters<FakeHub['commit']>[0]> = {}): Promise<FakeHub> {
  const hub = await startFakeHub()
  onTestFinished(() => hub.close())
  const files = [8, 4].map((bits) => ({ path: `Model-Q${bits}_0.gguf`, content: gguf(bits), lfs: true }))
  hub.commit({ id: REPO, files, ...more })
  return hub
}

async function emptyLibrary(): Promise<OwnedModels> {
  const root = mkdtempSync(join(tmpdir(), 'svc-sources-'))
  onTestFinished(() => rmSync(root, { recursive: true, force: true }))
  const library = await openLibrary({ root: join(root, 'store') })
  onTestFinished(() => library.close())
  return library
}

test('the chosen quant of a repository is imported whole, and again without a byte', async () => {
  const { endpoint } = await hubWith()
  const library = await emptyLibrary()
  const chosen = hubSource(REPO, { endpoint, quants: ['q8_0'] })
  const made = await library.import(chosen, 'org/model')
  expect(made).toMatchObject({ quants: ['q8_0'], fetchedBytes: gguf(8).length })
  const { files } = await library.open('svc:///org/model:q8_0')
  expect(readFileSync(files.at(-1)!.path).equals(gguf(8))).toBe(true)
  expect(await library.import(chosen, 'me/second')).toMatchObject({ manifests: made.manifests, fetchedBytes: 0 })
  expect((await library.list()).map(({ ref }) => ref)).toEqual(['svc:///me/second:q8_0', 'svc:///org/model:q8_0'])
})

test('what the hub does not give, or does not have, is told by a code', async () => {
  const { endpoint } = await hubWith({ gated: 'auto' })
  const library = await emptyLibrary()
  const codeOf = (repo: string, revision?: string): Promise<string> =>
    library.import(hubSource(repo, { endpoint, ...(revision !== undefined && { revision }) }), 'org/model').then(
      () => 'imported',
      ({ code }: { readonly code: string }) => code
    )
  expect(await codeOf('no slash here')).toBe('E_INVALID')
  expect(await codeOf(REPO)).toBe('E_SOURCE_FORBIDDEN')
  expect(await codeOf(REPO, '..')).toBe('E_INVALID')
  expect(await library.list()).toEqual([])
})

test('an import ends with the reason of its signal', async () => {
  const { endpoint } = await hubWith()
  const library = await emptyLibrary()
  const reason = new Error('enough')
  const stop = new AbortController()
  const importing = library.import(hubSource(REPO, { endpoint }), 'org/model', {
    signal: stop.signal,
    onProgress: () => stop.abort(reason)
  })
  await expect(importing).rejects.toBe(reason)
})
