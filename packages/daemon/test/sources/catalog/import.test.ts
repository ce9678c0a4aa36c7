import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Client, ClientError, createClient } from '@svc/client'
import type { ImportCatalogBody, Job } from '@svc/client/protocol'
import { type DaemonOptions, type RunningDaemon, startDaemon } from '@svc/daemon'
import { parseV1Torrent } from '@svc/swarm-v1'
import { type FakeCatalog, startFakeCatalog } from '@svc/testkit/fake-catalog'
import { type FakeHub, type FakeRepoFile, startFakeHub } from '@svc/testkit/fake-hub'
import { startLyingPeer } from '@svc/testkit/lying-v1-peer'
import { haveLibtorrent, startV1Peer, type V1Peer, type V1PeerOptions } from '@svc/testkit/v1-peer'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Catalog } from '../../../src/sources/catalog/part.ts'
import type { PullTimings } from '../../../src/sources/catalog/pull.ts'
import { createHubPart } from '../../../src/sources/hub/part.ts'

const REPO = 'Org/Model-GGUF'
const GGUF = 'model-q8_0.gguf'
/** A GGUF head and noise: recognition is by name, and a warning-free head keeps results comparable. */
const weights = (bytes: number): Buffer =>
  Buffer.concat([Buffer.from(`GGUF\x03\0\0\0${'\0'.repeat(16)}`, 'latin1'), randomBytes(bytes)])
const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

const cleanups: (() => Promise<unknown>)[] = []
let hub: FakeHub
let catalog: FakeCatalog
beforeEach(async () => {
  hub = await startFakeHub()
  cleanups.push(() => hub.close())
  catalog = await startFakeCatalog()
  cleanups.push(() => catalog.close())
})
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'svc-catalog-'))
  cleanups.push(() => rm(path, { recursive: true, force: true }))
  return path
}

interface Started {
  readonly daemon: RunningDaemon
  readonly client: Client
  readonly root: string
}

async function start(
  more: {
    readonly root?: string
    readonly timings?: Partial<PullTimings>
    readonly file?: DaemonOptions['fileConfig']
  } = {}
): Promise<Started> {
  const root = more.root ?? (await folder())
  const daemon = await startDaemon({
    root,
    socketPath: join(await folder(), 's.sock'),
    fileConfig: {
      hub: { endpoint: hub.endpoint },
      catalog: { endpoint: catalog.endpoint, ...more.file?.catalog },
      swarm: { dht: false, peer_addr: '127.0.0.1:0', fill_timeout: 20, ...more.file?.swarm }
    },
    parts: {
      hub: (context) => createHubPart(context),
      catalog: (context) =>
        new Catalog(context, {
          retry: { tries: 2, firstDelayMs: 10 },
          timings: { metadataTimeoutMs: 15_000, webAfterMs: 60_000, tickMs: 20, ...more.timings }
        })
    }
  })
  cleanups.push(() => daemon.close({ quick: true }))
  const client = createClient({ socketPath: daemon.socketPath })
  cleanups.push(async () => client.close())
  return { daemon, client, root }
}

/** A repository on the hub whose files a v1 seeder has as well, in a torrent named as the repository. */
interface Listed {
  readonly files: ReadonlyMap<string, Buffer>
  readonly commit: string
  readonly seed: V1Peer
}

async function listed(
  files: Record<string, Buffer>,
  more: { readonly torrentFiles?: Record<string, Buffer>; readonly seeds?: number } = {}
): Promise<Listed> {
  const commit = hub.commit({
    id: REPO,
    files: Object.entries(files).map(([path, content]): FakeRepoFile => ({ path, content }))
  })
  const seed = await seeder(more.torrentFiles ?? files)
  catalog.list([line(seed.infohash, GGUF, commit, more.seeds)])
  return { files: new Map(Object.entries(files)), commit, seed }
}

async function peer(options: V1PeerOptions): Promise<V1Peer> {
  const started = await startV1Peer(options)
  cleanups.push(() => started.stop())
  return started
}

async function seeder(files: Record<string, Buffer>): Promise<V1Peer> {
  const root = await folder()
  for (const [path, bytes] of Object.entries(files)) {
    await mkdir(dirname(join(root, 'model', path)), { recursive: true })
    await writeFile(join(root, 'model', path), bytes)
  }
  return peer({ mode: 'seed', folder: root, name: 'model', piece_length: 65_536 })
}

function line(infohash: string, dn: string, commit: string, seeds = 1, repo = REPO) {
  const ws = `${hub.endpoint}/${repo}/resolve/${commit}`
  return {
    repo,
    seeds,
    magnet: `magnet:?xt=urn:btih:${infohash}&dn=${encodeURIComponent(dn)}&ws=${encodeURIComponent(ws)}`
  }
}

async function pull(client: Client, body: Partial<ImportCatalogBody> = {}): Promise<Job> {
  const accepted = await client.importCatalog({ repo: REPO, ...body })
  expect(accepted).toMatchObject({
    kind: 'import-catalog',
    state: 'waiting',
    ref: REPO,
    filesTotal: expect.any(Number)
  })
  return finished(client, accepted)
}

async function finished(client: Client, { id }: Job): Promise<Job> {
  let last: Job | undefined
  for await (const job of client.watchJob(id, { intervalMs: 20 })) last = job
  return last!
}

const refusal = async (
  work: Promise<unknown>
): Promise<{ code: string; status: number | undefined; candidates: readonly string[] | undefined }> => {
  try {
    await work
  } catch (error) {
    expect(error).toBeInstanceOf(ClientError)
    const { code, status, candidates } = error as ClientError
    return { code, status, candidates }
  }
  throw new Error('it was accepted')
}

const blobsOf = async (root: string): Promise<string[]> =>
  (await readdir(join(root, 'blobs', 'sha256'), { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => entry.name)

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

  test('beside a peer that corrupts pieces the honest one completes the pull', async () => {
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

  test('only liars: nothing is stored and the job fails', async () => {
    const { seed } = await listed({ [GGUF]: weights(300_000) })
    const { info, pieceCount } = torrentOf(seed)
    const liar = await startLyingPeer(seed.infohash, info, pieceCount)
    cleanups.push(() => liar.close())
    const { client, root } = await start({ file: { swarm: { fill_timeout: 1 } } })
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

  test('another size than the anchor says is refused before a byte', async () => {
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
    test('with consent the record of the catalog is the anchor, and the result says so', async () => {
      const seed = await gone()
      catalog.record(REPO, new Map([[GGUF, sha256(content)]]))
      const { client } = await start()
      const job = await pull(client, { trustCatalog: true, peers: [seed.address] })
      expect(job).toMatchObject({ state: 'done', result: { quants: ['q8_0'] } })
      expect(job.result!.warnings).toEqual([expect.stringContaining('trust')])
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

  test('the daemon is the only seeder left, before and after a restart', async () => {
    const files = {
      [GGUF]: weights(500_000),
      'README.md': Buffer.from('skipped by the store, needed by the swarm'),
      'tokenizer.json': Buffer.from('{}')
    }
    const { seed } = await listed(files)
    const { client, daemon, root } = await start()
    expect((await pull(client, { peers: [seed.address] })).state).toBe('done')
    await seed.stop()
    const copies = (await blobsOf(root)).length

    const leech = async (port: number): Promise<void> => {
      const target = await folder()
      const leecher = await peer({ mode: 'leech', folder: target, torrent: seed.torrent, peers: [`127.0.0.1:${port}`] })
      await leecher.until((state) => state.seeding)
      for (const [path, bytes] of Object.entries(files))
        expect((await readFile(join(target, 'model', path))).equals(bytes)).toBe(true)
    }
    await leech(await portOf(client, seed.infohash))
    await client.close()
    await daemon.close()
    const again = await start({ root })
    await leech(await portOf(again.client, seed.infohash))
    expect((await blobsOf(root)).length).toBe(copies)
  })

  test('kill -9 in mid-pull: the next one goes on from there', async () => {
    const content = weights(4 << 20)
    const commit = hub.commit({ id: REPO, files: [{ path: GGUF, content, lfs: true }] })
    const source = await folder()
    await mkdir(join(source, 'model'))
    await writeFile(join(source, 'model', GGUF), content)
    const slow = await peer({
      mode: 'seed',
      folder: source,
      name: 'model',
      piece_length: 65_536,
      upload_limit: 1 << 20
    })
    catalog.list([line(slow.infohash, GGUF, commit)])
    const root = await folder()
    const socketPath = join(await folder(), 's.sock')
    const child = spawn(
      process.execPath,
      [
        '--conditions=svc-source',
        fileURLToPath(new URL('./daemon-child.ts', import.meta.url)),
        root,
        socketPath,
        hub.endpoint,
        catalog.endpoint
      ],
      { stdio: ['ignore', 'pipe', 'inherit'] }
    )
    await once(child.stdout, 'data')
    const first = createClient({ socketPath })
    const accepted = await first.importCatalog({ repo: REPO, peers: [slow.address] })
    for await (const job of first.watchJob(accepted.id, { intervalMs: 20 })) if ((job.bytesDone ?? 0) > 2 << 20) break
    child.kill('SIGKILL')
    await once(child, 'exit')
    await first.close()
    await slow.stop()

    const { client } = await start({ root })
    expect(await blobsOf(root)).toEqual([])
    const rest = await peer({ mode: 'seed', folder: source, name: 'model', piece_length: 65_536 })
    expect((await pull(client, { peers: [rest.address] })).state).toBe('done')
    const { uploaded } = await rest.until((state) => state.uploaded > 0)
    expect(uploaded).toBeLessThan(content.length - (512 << 10))
  })

  test('its upload budget is its own', async () => {
    const content = weights(2 << 20)
    const { seed } = await listed({ [GGUF]: content })
    const { client } = await start({ file: { catalog: { upload_limit: 1 << 20 }, swarm: { upload_limit: 0 } } })
    expect((await pull(client, { peers: [seed.address] })).state).toBe('done')
    await seed.stop()
    const port = await portOf(client, seed.infohash)
    const leecher = await peer({
      mode: 'leech',
      folder: await folder(),
      torrent: seed.torrent,
      peers: [`127.0.0.1:${port}`]
    })
    const begun = performance.now()
    await leecher.until((state) => state.seeding)
    expect((2 << 20) / ((performance.now() - begun) / 1000)).toBeLessThan(1.6 * (1 << 20))
  })

  test('without seeders the hub still completes it: the anchor decides, not the source', async () => {
    const { seed } = await listed({ [GGUF]: weights(300_000), 'config.json': Buffer.from('{}') }, { seeds: 0 })
    await seed.stop()
    const { client } = await start()
    const job = await pull(client)
    expect(job).toMatchObject({ state: 'done', result: { quants: ['q8_0'] } })
  })
})

describe('the error table', () => {
  test('bodies', async () => {
    const { client } = await start()
    for (const body of [
      {},
      { repo: 5 },
      { repo: 'no-slash' },
      { repo: REPO, peers: 'x' },
      { repo: REPO, peers: ['nowhere'] },
      { repo: REPO, as: 'A/B' },
      { repo: REPO, as: 'svc/x' },
      { repo: REPO, trustCatalog: 1 }
    ]) {
      expect(await refusal(client.importCatalog(body as never)), JSON.stringify(body)).toMatchObject({
        code: 'E_BAD_REQUEST',
        status: 400
      })
    }
  })
  test('not listed', async () => {
    const { client } = await start()
    expect(await refusal(client.importCatalog({ repo: 'Org/None' }))).toMatchObject({
      code: 'E_UNKNOWN_REF',
      status: 400
    })
    catalog.fail(404)
    expect(await refusal(client.importCatalog({ repo: 'Org/None' }))).toMatchObject({
      code: 'E_UNKNOWN_REF',
      status: 400
    })
  })
  test('the provider fails', async () => {
    const { client } = await start()
    catalog.fail(500)
    expect(await refusal(client.importCatalog({ repo: REPO }))).toMatchObject({
      code: 'E_SOURCE_UNAVAILABLE',
      status: 502
    })
  })
  test('the provider is gone', async () => {
    const { client } = await start()
    await catalog.close()
    expect(await refusal(client.importCatalog({ repo: REPO }))).toMatchObject({
      code: 'E_SOURCE_UNAVAILABLE',
      status: 502
    })
  })
  test('the hub is gone', async () => {
    const { client } = await start()
    catalog.list([line('a'.repeat(40), GGUF, 'f'.repeat(40))])
    await hub.close()
    expect(await refusal(client.importCatalog({ repo: REPO }))).toMatchObject({
      code: 'E_SOURCE_UNAVAILABLE',
      status: 502
    })
  }, 60_000)
  test('the swarm client is off', async () => {
    const { client } = await start({ file: { swarm: { enabled: false } } })
    expect(await refusal(client.importCatalog({ repo: REPO }))).toMatchObject({
      code: 'E_SOURCE_UNAVAILABLE',
      status: 503
    })
  })
  test('the swarm is unreachable', async () => {
    const commit = hub.commit({ id: REPO, files: [{ path: GGUF, content: weights(10), lfs: true }] })
    const { client } = await start({ timings: { metadataTimeoutMs: 300 } })
    // no file of the anchor has the listed name, so that the hub cannot help either
    catalog.list([line('a'.repeat(40), 'another-name.gguf', commit)])
    expect(await pull(client)).toMatchObject({ state: 'failed', error: { code: 'E_INTERNAL' } })
  })
})

function torrentOf(seed: V1Peer) {
  return parseV1Torrent(Buffer.from(seed.torrent, 'base64'), seed.infohash)
}

/** Where the foreign swarm listens, once it seeds the torrent. */
async function portOf(client: Client, infohash: string): Promise<number> {
  let port: number | undefined
  await expect
    .poll(
      async () => {
        const { catalog: foreign } = await client.status()
        port = foreign?.torrents.some(
          (torrent) => torrent.infohash === `btih:${infohash}` && torrent.state === 'seeding'
        )
          ? Number(foreign.peerAddress!.split(':').at(-1))
          : undefined
        return port
      },
      { timeout: 10_000 }
    )
    .toBeDefined()
  return port!
}
