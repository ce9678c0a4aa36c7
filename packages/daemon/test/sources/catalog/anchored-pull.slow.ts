import { startLyingPeer } from '@svc/testkit/lying-v1-peer'
import { haveLibtorrent, type V1Peer } from '@svc/testkit/v1-peer'
import { describe, expect, test, vi } from 'vitest'
import {
  blobsOf,
  catalog,
  cleanups,
  finished,
  freshSources,
  GGUF,
  hub,
  line,
  listed,
  pull,
  REPO,
  refusal,
  seeder,
  sha256,
  start,
  torrentOf,
  weights
} from './catalog-fixture.ts'

freshSources()

describe.skipIf(!haveLibtorrent)('with a libtorrent seeder', () => {
  test('an anchored pull gives the documents of a hub import of the same files', async () => {
    const files = {
      [GGUF]: weights(400_000),
      'config.json': Buffer.from('{"model_type": "llama"}'),
      'tokenizer.json': Buffer.from('{}')
    }
    const { seed, commit } = await listed(files)
    const { client } = await start()
    const job = await pull(client, { peers: [seed.address] })
    expect(job).toMatchObject({ state: 'done', as: 'org/model-gguf', result: { quants: ['q8_0'], skipped: 0 } })

    const viaHub = await start()
    const other = await finished(viaHub.client, await viaHub.client.importHf({ repo: REPO, revision: commit }))
    expect(other.state).toBe('done')
    expect(job.result!.manifests).toEqual(other.result!.manifests)
    expect(job.result!.indexDigest).toBe(other.result!.indexDigest)
  })

  test('bytes hashed during a pull are not read again, and give the documents of a hub import', async () => {
    const { seed, commit } = await listed({ [GGUF]: weights(5 << 20), 'config.json': Buffer.from('{"a":1}') })
    const { client, store } = await start()
    const verify = vi.spyOn(store, 'verify')
    const job = await pull(client, { peers: [seed.address] })
    expect(job).toMatchObject({ state: 'done' })
    expect(verify).not.toHaveBeenCalled()
    const viaHub = await start()
    const other = await finished(viaHub.client, await viaHub.client.importHf({ repo: REPO, revision: commit }))
    expect(job.result!.manifests).toEqual(other.result!.manifests)
    // a blob that was there before has nothing to tell: it is read, once for its tree
    expect(await pull(client, { peers: [seed.address], as: 'again/it' })).toMatchObject({ state: 'done' })
    expect(verify).toHaveBeenCalled()
  })

  test('the quant picks the torrent', async () => {
    const one = weights(1000)
    const two = weights(2000)
    const commit = hub.commit({
      id: REPO,
      files: [
        { path: 'm-q4_0.gguf', content: one, lfs: true },
        { path: 'm-q8_0.gguf', content: two, lfs: true }
      ]
    })
    const first = await seeder({ 'm-q4_0.gguf': one })
    const second = await seeder({ 'm-q8_0.gguf': two })
    catalog.list([line(first.infohash, 'm-q4_0.gguf', commit), line(second.infohash, 'm-q8_0.gguf', commit)])
    const { client } = await start()
    expect(await refusal(client.importCatalog({ repo: REPO }))).toEqual({
      code: 'E_BAD_REQUEST',
      status: 400,
      candidates: ['q4_0', 'q8_0']
    })
    expect(await refusal(client.importCatalog({ repo: REPO, quant: 'q2_k' }))).toMatchObject({
      code: 'E_BAD_REQUEST',
      status: 400
    })
    const job = await pull(client, { quant: 'q8', peers: [second.address], as: 'a/b' })
    expect(job).toMatchObject({ state: 'done', as: 'a/b', result: { quants: ['q8_0'] } })
  })

  test('an honest peer completes the pull beside one that corrupts pieces', async () => {
    const listing = await listed({ [GGUF]: weights(300_000) })
    const { seed } = listing
    const { info, pieceCount } = torrentOf(seed)
    const liar = await startLyingPeer(seed.infohash, info, pieceCount)
    cleanups.push(() => liar.close())
    const { client } = await start()
    const accepted = await client.importCatalog({ repo: REPO, peers: [liar.address, seed.address] })
    const job = await finished(client, accepted)
    expect(job.state).toBe('done')
    const { files } = await client.open(`svc:///org/model-gguf:q8_0`)
    expect(files.find((file) => file.kind === 'weights.gguf')!.digest).toBe(
      `sha256:${sha256(listing.files.get(GGUF)!)}`
    )
  })

  test('dishonest peers alone: nothing is stored and the job fails', async () => {
    const { seed } = await listed({ [GGUF]: weights(300_000) })
    const { info, pieceCount } = torrentOf(seed)
    const liar = await startLyingPeer(seed.infohash, info, pieceCount)
    cleanups.push(() => liar.close())
    const { client, root } = await start({ file: { swarm: { fill_timeout: 4 } } })
    const job = await pull(client, { peers: [liar.address] })
    expect(job).toMatchObject({ state: 'failed', error: { code: 'E_SOURCE_UNAVAILABLE' } })
    expect(liar.blocks()).toBeGreaterThan(0)
    expect(await blobsOf(root)).toEqual([])
  })

  test('a file that the anchor does not name refuses the torrent', async () => {
    const content = weights(100_000)
    const { seed } = await listed(
      { [GGUF]: content },
      { torrentFiles: { [GGUF]: content, 'extra.json': Buffer.from('{}') } }
    )
    const { client, root } = await start()
    const job = await pull(client, { peers: [seed.address] })
    expect(job).toMatchObject({
      state: 'failed',
      error: { code: 'E_NOT_IMPORTABLE', message: expect.stringContaining('extra.json') }
    })
    expect(await blobsOf(root)).toEqual([])
  })

  test.each([
    ['in large-file storage', true],
    ['in git', false]
  ])('right size, wrong bytes (%s): refused, nothing stored', async (_, lfs) => {
    const right = weights(100_000)
    const wrong = Buffer.from(right)
    wrong[70_000]! ^= 1
    const commit = hub.commit({ id: REPO, files: [{ path: GGUF, content: right, lfs }] })
    const seed = await seeder({ [GGUF]: wrong })
    catalog.list([line(seed.infohash, GGUF, commit)])
    const { client, root } = await start()
    const job = await pull(client, { peers: [seed.address] })
    expect(job).toMatchObject({
      state: 'failed',
      error: { code: 'E_NOT_IMPORTABLE', message: expect.stringContaining(GGUF) }
    })
    expect(await blobsOf(root)).toEqual([])
  })

  test("a size other than the anchor's is refused before any byte", async () => {
    const right = weights(100_000)
    const commit = hub.commit({ id: REPO, files: [{ path: GGUF, content: right, lfs: true }] })
    const seed = await seeder({ [GGUF]: right.subarray(1) })
    catalog.list([line(seed.infohash, GGUF, commit)])
    const { client, root } = await start()
    expect(await pull(client, { peers: [seed.address] })).toMatchObject({
      state: 'failed',
      error: { code: 'E_NOT_IMPORTABLE' }
    })
    expect(await blobsOf(root)).toEqual([])
  })

  describe('a rescued model', () => {
    const content = weights(120_000)
    async function gone(): Promise<V1Peer> {
      const seed = await seeder({ [GGUF]: content })
      catalog.list([line(seed.infohash, GGUF, 'f'.repeat(40))])
      return seed
    }
    test('is refused without consent, before a job', async () => {
      await gone()
      const { client } = await start()
      expect(await refusal(client.importCatalog({ repo: REPO }))).toMatchObject({ code: 'E_NOT_ANCHORED', status: 422 })
      expect(await client.jobs()).toEqual([])
    })
    test("with consent, the catalog's record is the anchor, and the result says so", async () => {
      const seed = await gone()
      catalog.record(REPO, new Map([[GGUF, sha256(content)]]))
      const { client } = await start()
      const job = await pull(client, { trustCatalog: true, peers: [seed.address] })
      expect(job).toMatchObject({ state: 'done', result: { quants: ['q8_0'] } })
      expect(job.result!.warnings).toEqual([expect.any(String)])
    })
    test('a record with another sum refuses the bytes', async () => {
      const seed = await gone()
      catalog.record(REPO, new Map([[GGUF, '0'.repeat(64)]]))
      const { client, root } = await start()
      const job = await pull(client, { trustCatalog: true, peers: [seed.address] })
      expect(job).toMatchObject({ state: 'failed', error: { code: 'E_NOT_IMPORTABLE' } })
      expect(await blobsOf(root)).toEqual([])
    })
    test('without a record consent does not help', async () => {
      await gone()
      const { client } = await start()
      expect(await refusal(client.importCatalog({ repo: REPO, trustCatalog: true }))).toMatchObject({
        code: 'E_NOT_ANCHORED',
        status: 422
      })
    })
  })
})
