// A fake hub and a fake catalog, new for each test, and daemons that use them.
import { createHash, randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { DiskBlobStore } from '@svc/cas'
import { type Client, ClientError, createClient } from '@svc/client'
import type { ImportCatalogBody, Job } from '@svc/client/protocol'
import type { DaemonOptions } from '@svc/daemon'
import { parseV1Torrent } from '@svc/swarm-v1'
import { type FakeCatalog, startFakeCatalog } from '@svc/testkit/fake-catalog'
import { type FakeHub, type FakeRepoFile, startFakeHub } from '@svc/testkit/fake-hub'
import { startV1Peer, type V1Peer, type V1PeerOptions } from '@svc/testkit/v1-peer'
import { afterEach, beforeEach, expect } from 'vitest'
import type { PullTimings } from '../../../../catalog/src/pull.ts'
import { type InspectedDaemon, startInspected } from '../../../src/app/daemon.ts'
import { openSwarm } from '../../../src/app/open-swarm.ts'
import { CatalogJobs } from '../../../src/jobs/catalog-jobs.ts'
import { HubJobs } from '../../../src/jobs/hub-jobs.ts'

export const REPO = 'Org/Model-GGUF'
export const GGUF = 'model-q8_0.gguf'
/** A GGUF head and noise: recognition is by name, and a warning-free head keeps results comparable. */
export const weights = (bytes: number): Buffer =>
  Buffer.concat([Buffer.from(`GGUF\x03\0\0\0${'\0'.repeat(16)}`, 'latin1'), randomBytes(bytes)])
export const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

/** Undone after each test, the latest first. */
export const cleanups: (() => Promise<unknown>)[] = []
export let hub: FakeHub
export let catalog: FakeCatalog

/** For a file's tests: {@link hub} and {@link catalog} are new for each of them. */
export function freshSources(): void {
  beforeEach(async () => {
    hub = await startFakeHub()
    cleanups.push(() => hub.close())
    catalog = await startFakeCatalog()
    cleanups.push(() => catalog.close())
  })
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
  })
}

export async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'svc-catalog-'))
  cleanups.push(() => rm(path, { recursive: true, force: true }))
  return path
}

export interface Started {
  readonly daemon: InspectedDaemon
  readonly client: Client
  readonly root: string
  /** The daemon's own. */
  readonly store: DiskBlobStore
}

export async function start(
  more: {
    readonly root?: string
    readonly timings?: Partial<PullTimings>
    readonly file?: DaemonOptions['fileConfig']
  } = {}
): Promise<Started> {
  const root = more.root ?? (await folder())
  let store: DiskBlobStore | undefined
  const daemon = await startInspected({
    hashThreads: 1,
    root,
    socketPath: join(await folder(), 's.sock'),
    fileConfig: {
      hub: { endpoint: hub.endpoint },
      catalog: { endpoint: catalog.endpoint, ...more.file?.catalog },
      swarm: { dht: false, peer_addr: '127.0.0.1:0', fill_timeout: 20, ...more.file?.swarm },
      ...(more.file?.trust && { trust: more.file.trust }),
      ...(more.file?.store && { store: more.file.store })
    },
    networks: {
      hub: (context) => new HubJobs(context),
      swarm: (context) => openSwarm(context),
      catalog: (context) => {
        store = context.store
        return new CatalogJobs(context, {
          retry: { tries: 2, firstDelayMs: 10 },
          timings: { metadataTimeoutMs: 15_000, webAfterMs: 60_000, tickMs: 20, ...more.timings }
        })
      }
    }
  })
  cleanups.push(() => daemon.close({ quick: true }))
  const client = createClient({ socketPath: daemon.socketPath })
  cleanups.push(async () => client.close())
  return { daemon, client, root, store: store! }
}

/** A repository on the hub whose files a v1 seeder has as well, in a torrent named as the repository. */
export interface Listed {
  readonly files: ReadonlyMap<string, Buffer>
  readonly commit: string
  readonly seed: V1Peer
}

export async function listed(
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

export async function peer(options: V1PeerOptions): Promise<V1Peer> {
  const started = await startV1Peer(options)
  cleanups.push(() => started.stop())
  return started
}

export async function seeder(files: Record<string, Buffer>): Promise<V1Peer> {
  const root = await folder()
  for (const [path, bytes] of Object.entries(files)) {
    await mkdir(dirname(join(root, 'model', path)), { recursive: true })
    await writeFile(join(root, 'model', path), bytes)
  }
  return peer({ mode: 'seed', folder: root, name: 'model', piece_length: 65_536 })
}

export function line(infohash: string, dn: string, commit: string, seeds = 1, repo = REPO) {
  const ws = `${hub.endpoint}/${repo}/resolve/${commit}`
  return {
    repo,
    seeds,
    magnet: `magnet:?xt=urn:btih:${infohash}&dn=${encodeURIComponent(dn)}&ws=${encodeURIComponent(ws)}`
  }
}

export async function pull(client: Client, body: Partial<ImportCatalogBody> = {}): Promise<Job> {
  const accepted = await client.importCatalog({ repo: REPO, ...body })
  expect(accepted).toMatchObject({
    kind: 'import-catalog',
    state: 'waiting',
    ref: REPO,
    filesTotal: expect.any(Number)
  })
  return finished(client, accepted)
}

export async function finished(client: Client, { id }: Job): Promise<Job> {
  let last: Job | undefined
  for await (const job of client.watchJob(id, { intervalMs: 20 })) last = job
  return last!
}

export async function refusal(
  work: Promise<unknown>
): Promise<{ code: string; status: number | undefined; candidates: readonly string[] | undefined }> {
  try {
    await work
  } catch (error) {
    expect(error).toBeInstanceOf(ClientError)
    const { code, status, candidates } = error as ClientError
    return { code, status, candidates }
  }
  throw new Error('it was accepted')
}

export const blobsOf = async (root: string): Promise<string[]> =>
  (await readdir(join(root, 'blobs', 'sha256'), { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => entry.name)

export function torrentOf(seed: V1Peer) {
  return parseV1Torrent(Buffer.from(seed.torrent, 'base64'), seed.infohash)
}

/** Where the foreign swarm listens, once it seeds the torrent. */
export async function portOf(client: Client, infohash: string): Promise<number> {
  let port: number | undefined
  await expect
    .poll(async () => {
      const { catalog: foreign } = await client.status()
      port = foreign?.torrents.some((torrent) => torrent.infohash === `btih:${infohash}` && torrent.state === 'seeding')
        ? Number(foreign.peerAddress!.split(':').at(-1))
        : undefined
      return port
    })
    .toBeDefined()
  return port!
}
