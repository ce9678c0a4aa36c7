import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { localFiles } from '../../../library/src/embedded/local-files.ts'
import type { Models } from '../../../library/src/embedded/models.ts'
import { temporaryFolder } from '../support/daemon.ts'
import { gguf, writeFiles } from '../support/models.ts'

const codeOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'done',
    (error: { code?: unknown }) => error.code ?? error
  )

/** What holds for every {@link Models}. @param opened models of an empty store, closed when the test ends */
export function describeModels(what: string, opened: () => Promise<Models>): void {
  describe(`models of ${what}`, () => {
    it('imports, resolves, opens, lists, ensures and verifies', async () => {
      const models = await opened()
      const weights = gguf(3_000)
      const folder = writeFiles(temporaryFolder(), { 'a-q8_0.gguf': weights, 'README.md': '# a' })
      const seen: number[] = []
      const imported = await models.import(localFiles([folder]), 'me/a', {
        onProgress: ({ bytesDone }) => bytesDone !== undefined && seen.push(bytesDone)
      })
      expect(imported).toMatchObject({ quants: ['q8_0'] })
      expect(Math.max(...seen)).toBeGreaterThanOrEqual(0)
      const resolved = await models.resolve('svc:///me/a:q8_0')
      expect(resolved).toMatchObject({ ns: 'me', name: 'a', quant: 'q8_0', manifestDigest: imported.manifests[0] })
      const { files, missing } = await models.open('svc:///me/a:q8_0')
      expect(missing).toBeUndefined()
      const file = files.find(({ name }) => name === 'a-q8_0.gguf')!
      expect(readFileSync(file.path).equals(weights)).toBe(true)
      expect(await models.list()).toEqual([
        {
          ref: 'svc:///me/a:q8_0',
          manifestDigest: resolved.manifestDigest,
          sizeBytes: expect.any(Number),
          isComplete: true
        }
      ])
      expect((await models.ensure('svc:///me/a:q8_0')).files).toEqual(files)
      expect(await models.verify('all')).toEqual({ mismatched: [], missing: [], stateErrors: [] })
    })

    it('refuses with stable codes', async () => {
      const models = await opened()
      expect(await codeOf(models.resolve('svc:///me/none:q8_0'))).toBe('E_UNKNOWN_REF')
      expect(await codeOf(models.open('svc:///me/none:q8_0'))).toBe('E_UNKNOWN_REF')
      expect(await codeOf(models.ensure('svc:///me/none:q8_0'))).toBe('E_UNKNOWN_REF')
      expect(await codeOf(models.resolve('svc:///me/a:Q8 0'))).toBe('E_PARSE')
      const folder = writeFiles(temporaryFolder(), { 'notes.txt': 'nothing to load' })
      expect(await codeOf(models.import(localFiles([folder]), 'me/a'))).toBe('E_NOT_IMPORTABLE')
      expect(await codeOf(models.import(localFiles([join(folder, 'absent')]), 'me/a'))).not.toBe('done')
      expect(await models.list()).toEqual([])
    })

    it('names what is corrupt, and what is missing then', async () => {
      const models = await opened()
      const folder = writeFiles(temporaryFolder(), { 'a-q8_0.gguf': gguf(3_000, 9) })
      await models.import(localFiles([folder]), 'me/a')
      const { files } = await models.open('svc:///me/a:q8_0')
      const { path, digest } = files.find(({ name }) => name === 'a-q8_0.gguf')!
      const { chmodSync, writeFileSync } = await import('node:fs')
      chmodSync(path, 0o600)
      writeFileSync(path, gguf(3_000, 10))
      expect(await models.verify('svc:///me/a:q8_0')).toMatchObject({ mismatched: [digest] })
      expect(await models.open('svc:///me/a:q8_0')).toMatchObject({ missing: [digest] })
      expect(await codeOf(models.ensure('svc:///me/a:q8_0'))).toBe('E_SOURCE_UNAVAILABLE')
    })

    it('ends an import with the reason of its signal', async () => {
      const models = await opened()
      const folder = writeFiles(temporaryFolder(), { 'a-q8_0.gguf': gguf(3_000) })
      const reason = new Error('not wanted')
      await expect(models.import(localFiles([folder]), 'me/a', { signal: AbortSignal.abort(reason) })).rejects.toBe(
        reason
      )
      expect(await models.list()).toEqual([])
    })
  })
}
