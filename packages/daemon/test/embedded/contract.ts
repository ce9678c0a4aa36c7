import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { localFiles, type ModelSource, type Models, type ReadableModels } from '@svc/library'
import type { HubSourceOptions } from '@svc/sources/hub'
import { type FakeHub, startFakeHub } from '@svc/testkit/fake-hub'
import { describe, expect, it, onTestFinished } from 'vitest'
import { temporaryFolder } from '../support/daemon.ts'
import { gguf, writeFiles } from '../support/models.ts'

const REF = 'svc:///me/a:q8_0'

const codeOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'done',
    (error: { code?: unknown }) => error.code ?? error
  )

const importGguf = (models: Models, seed: number) =>
  models.import(localFiles([writeFiles(temporaryFolder(), { 'a-q8_0.gguf': gguf(3_000, seed) })]), 'me/a')

/** An empty store, and two ways to it. */
export interface OpenedReading {
  readonly owner: Models
  readonly reading: ReadableModels
  /** Collects with grace 0; after `reading` was closed, too. */
  collect(): Promise<unknown>
}

/** What holds for all {@link ReadableModels}. @param opened closed when the test ends */
export function describeReading(what: string, opened: () => Promise<OpenedReading>): void {
  describe(`reading ${what}`, () => {
    it('resolves, opens and lists what is there, and sees changes', async () => {
      const { owner, reading } = await opened()
      expect(await reading.list()).toEqual([])
      const [first] = (await importGguf(owner, 1)).manifests
      const resolved = await reading.resolve(REF)
      expect(resolved).toMatchObject({ ns: 'me', name: 'a', quant: 'q8_0', manifestDigest: first })
      const { files, missing } = await reading.open(REF)
      expect(missing).toBeUndefined()
      expect(readFileSync(files.find(({ name }) => name === 'a-q8_0.gguf')!.path).equals(gguf(3_000, 1))).toBe(true)
      const entry = { ref: REF, sizeBytes: expect.any(Number), isComplete: true }
      expect(await reading.list()).toEqual([{ ...entry, manifestDigest: first }])
      const [second] = (await importGguf(owner, 2)).manifests
      expect((await reading.resolve(REF)).manifestDigest).toBe(second)
      expect(await reading.list()).toEqual([{ ...entry, manifestDigest: second }])
    })

    it('refuses with stable codes', async () => {
      const { reading } = await opened()
      expect(await codeOf(reading.resolve('svc:///me/none:q8_0'))).toBe('E_UNKNOWN_REF')
      expect(await codeOf(reading.open('svc:///me/none:q8_0'))).toBe('E_UNKNOWN_REF')
      expect(await codeOf(reading.resolve('svc:///me/a:Q8 0'))).toBe('E_PARSE')
    })

    it('keeps what it opened from a collection with grace 0 until it is closed', async () => {
      const { owner, reading, collect } = await opened()
      await importGguf(owner, 1)
      // the other model has the same config
      const files = (await reading.open(REF)).files.filter(({ kind }) => kind !== 'config')
      await importGguf(owner, 2)
      await collect()
      expect(files.filter(({ path }) => !existsSync(path))).toEqual([])
      await reading.close()
      await collect()
      expect(files.filter(({ path }) => existsSync(path))).toEqual([])
    })
  })
}

/** An empty store, for which imports from a hub are described by `hubSource`. */
export interface OpenedModels {
  readonly models: Models
  hubSource(repo: string, options?: HubSourceOptions): ModelSource
  collect: OpenedReading['collect']
}

/** What holds for all {@link Models}. @param opened closed when the test ends */
export function describeModels(what: string, opened: (hub: FakeHub) => Promise<OpenedModels>): void {
  const openedHere = async () => {
    const hub = await startFakeHub()
    onTestFinished(() => hub.close())
    return { hub, ...(await opened(hub)) }
  }
  const modelsHere = async () => (await openedHere()).models

  describeReading(what, async () => {
    const { models, collect } = await openedHere()
    return { owner: models, reading: models, collect }
  })

  describe(`models of ${what}`, () => {
    it('imports, ensures and verifies', async () => {
      const models = await modelsHere()
      const folder = writeFiles(temporaryFolder(), { 'a-q8_0.gguf': gguf(3_000), 'README.md': '# a' })
      const seen: number[] = []
      const imported = await models.import(localFiles([folder]), 'me/a', {
        onProgress: ({ bytesDone }) => bytesDone !== undefined && seen.push(bytesDone)
      })
      expect(imported).toMatchObject({ quants: ['q8_0'] })
      expect(Math.max(...seen)).toBeGreaterThanOrEqual(0)
      expect((await models.ensure(REF)).files).toEqual((await models.open(REF)).files)
      expect(await models.verify('all')).toEqual({ mismatched: [], missing: [], stateErrors: [] })
    })

    it('imports what is chosen of local files', async () => {
      const models = await modelsHere()
      const folder = writeFiles(temporaryFolder(), { 'a-q8_0.gguf': gguf(3_000), 'a-q4_0.gguf': gguf(2_000) })
      expect(await models.import(localFiles([folder], { quants: ['q4_0'] }), 'me/a')).toMatchObject({
        quants: ['q4_0']
      })
      expect((await models.list()).map(({ ref }) => ref)).toEqual(['svc:///me/a:q4_0'])
    })

    it('imports what is chosen of a repository of the hub, under normalized names', async () => {
      const { hub, models, hubSource } = await openedHere()
      const files = [8, 4].map((bits) => ({ path: `Model-Q${bits}_0.gguf`, content: gguf(100_000, bits), lfs: true }))
      const revision = hub.commit({ id: 'Org/Model', files })
      const made = await models.import(hubSource('Org/Model', { revision, quants: ['Q8_0'] }), 'org/model')
      expect(made).toMatchObject({ quants: ['q8_0'] })
      const ref = 'svc:///org/model:q8_0'
      const weights = (await models.open(ref)).files.find(({ kind }) => kind === 'weights.gguf')!
      expect(readFileSync(weights.path).equals(gguf(100_000, 8))).toBe(true)
      expect(weights.name).toBe('model-q8_0.gguf')
    })

    it('tells by its code what a hub does not give', async () => {
      const { hub, models, hubSource } = await openedHere()
      hub.commit({ id: 'Org/Gated', gated: 'auto', files: [{ path: 'a-Q8_0.gguf', content: gguf(3_000), lfs: true }] })
      expect(await codeOf(models.import(hubSource('Org/Gated'), 'org/gated'))).toBe('E_SOURCE_FORBIDDEN')
      expect(await models.list()).toEqual([])
    })

    it('refuses with stable codes', async () => {
      const models = await modelsHere()
      expect(await codeOf(models.ensure('svc:///me/none:q8_0'))).toBe('E_UNKNOWN_REF')
      const folder = writeFiles(temporaryFolder(), { 'notes.txt': 'nothing to load' })
      expect(await codeOf(models.import(localFiles([folder]), 'me/a'))).toBe('E_NOT_IMPORTABLE')
      expect(await codeOf(models.import(localFiles([join(folder, 'absent')]), 'me/a'))).not.toBe('done')
      expect(await models.list()).toEqual([])
    })

    it('names what is corrupt, and what is missing then', async () => {
      const models = await modelsHere()
      await importGguf(models, 9)
      const { files } = await models.open(REF)
      const { path, digest } = files.find(({ name }) => name === 'a-q8_0.gguf')!
      chmodSync(path, 0o600)
      writeFileSync(path, gguf(3_000, 10))
      expect(await models.verify(REF)).toMatchObject({ mismatched: [digest] })
      expect(await models.open(REF)).toMatchObject({ missing: [digest] })
      expect(await codeOf(models.ensure(REF))).toBe('E_SOURCE_UNAVAILABLE')
    })

    it('ends an import with the reason of its signal', async () => {
      const models = await modelsHere()
      const folder = writeFiles(temporaryFolder(), { 'a-q8_0.gguf': gguf(3_000) })
      const reason = new Error('not wanted')
      const signal = AbortSignal.abort(reason)
      await expect(models.import(localFiles([folder]), 'me/a', { signal })).rejects.toBe(reason)
      expect(await models.list()).toEqual([])
    })
  })
}
