// Whoever lies about companions gives nothing: the model stays, and not a byte of theirs is kept (spec doc.22).

import { createHash } from 'node:crypto'
import { canonicalBytes, companionsTorrent, manifestPath, sealCompanions, torrentName } from '@svc/manifest'
import { buildInfo, formatInfohash, leafLayer, piecesRoot, type TorrentInfo } from '@svc/metainfo'
import { digestFromBytes, type Sha256Digest } from '@svc/ref'
import { createSwarm, type TorrentStorage } from '@svc/swarm'
import { expect, onTestFinished, test } from 'vitest'
import { openSwarm } from '../../src/app/open-swarm.ts'
import { sharedByFile } from '../support/daemon.ts'
import { eventually, Node, type NodeOptions, pinned, weights } from './nodes.ts'

/** Waits for companions only a moment. */
const IMPATIENT: NodeOptions = {
  more: { networks: { swarm: (context) => openSwarm(context, { companionsTimeoutMs: 5_000 }) } }
}

type Bytes = Uint8Array
const digestOf = (bytes: Bytes): Sha256Digest => digestFromBytes(createHash('sha256').update(bytes).digest())
const rootOf = (bytes: Bytes): Bytes | undefined =>
  bytes.length === 0 ? undefined : piecesRoot(leafLayer(bytes), bytes.length)

/** A daemon that has the model, and nothing beside it. */
const victim = sharedByFile(async (cleanUp) => {
  const seeder = await Node.start({}, cleanUp)
  const share = await seeder.publish({ 'model-q8_0.gguf': weights(30_000, 91) })
  const node = await Node.start(IMPATIENT, cleanUp)
  expect((await node.importBt(pinned(share, { as: 'a/b' }))).state).toBe('done')
  return { node, share }
})

/** Any files under any name, as a peer that seeds them. */
async function seeded(name: string, files: ReadonlyMap<string, Bytes>): Promise<{ info: TorrentInfo; peer: string }> {
  const listed = [...files].map(([path, bytes]) => ({ path, length: bytes.length, piecesRoot: rootOf(bytes) }))
  const info = buildInfo({ name, pieceLength: 1 << 20, files: listed })
  const contents = info.files.map(({ path }) => files.get(path)!)
  const storage: TorrentStorage = {
    open: async () => undefined,
    state: async () => ({ kind: 'complete' }),
    read: async (index, offset, target) => {
      const part = contents[index]!.subarray(offset, offset + target.length)
      target.set(part)
      return part.length
    },
    writer: () => Promise.reject(new Error('complete')),
    fileComplete: async () => 'ok',
    close: async () => undefined
  }
  const swarm = await createSwarm({ peerAddress: { host: '127.0.0.1', port: 0 }, dht: false, lsd: false })
  onTestFinished(() => swarm.close())
  swarm.add({ info, storage, seedOnly: true })
  return { info, peer: `127.0.0.1:${swarm.port}` }
}

interface Lie {
  /** The bytes of the pinned document. */
  readonly document: Bytes
  /** What the torrent holds beside it; its own bytes in place of the document's where it has that path. */
  readonly files: Readonly<Record<string, Bytes>>
  readonly ownPath?: Bytes
}
const GOOD = Buffer.from('{"temperature":0.6}')
const OTHER = Buffer.from('{"temperature":9.9}')
const row = (path: string, bytes: Bytes) => ({ path, size: bytes.length, digest: digestOf(bytes) })
const sealed = (...files: ReturnType<typeof row>[]): Bytes => sealCompanions({ files, omitted: [] }).bytes
const raw = (...files: object[]): Bytes => canonicalBytes({ schema: 'svc.companions.v1', files, omitted: [] } as never)

const LIES: Record<string, Lie> = {
  'wrong bytes of the document': {
    document: sealed(row('a.json', GOOD)),
    files: { 'a.json': GOOD },
    ownPath: sealed(row('a.json', OTHER))
  },
  'a document that is none': { document: Buffer.from('{"a":1}'), files: { 'a.json': GOOD } },
  'a file of more than 1 MiB': {
    document: sealed(row('a.json', GOOD)),
    files: { 'a.json': GOOD, 'b.bin': Buffer.alloc((1 << 20) + 1) }
  },
  'sizes beyond all bounds': { document: raw({ ...row('a.json', GOOD), size: 2 ** 50 }), files: { 'a.json': GOOD } },
  'another size than the file has': { document: raw({ ...row('a.json', GOOD), size: 5 }), files: { 'a.json': GOOD } },
  'more than a thousand files': {
    document: sealed(row('a.json', GOOD)),
    files: Object.fromEntries(Array.from({ length: 1_001 }, (_, i) => [`${i}.json`, GOOD]))
  },
  'a path that leads out': { document: raw(row('../../a.json', GOOD)), files: { 'a.json': GOOD } },
  'an absolute path': { document: raw(row('/a.json', GOOD)), files: { 'a.json': GOOD } },
  'a companion that fails its digest': { document: sealed(row('a.json', GOOD)), files: { 'a.json': OTHER } },
  'a file that the document does not list': {
    document: sealed(row('a.json', GOOD)),
    files: { 'a.json': GOOD, 'b.json': OTHER }
  },
  'a file that is listed and not there': {
    document: sealed(row('a.json', GOOD), row('b.json', OTHER)),
    files: { 'a.json': GOOD }
  },
  'the path of another file': {
    document: sealed(row('a.json', GOOD), row('b.json', OTHER)),
    files: { 'a.json': OTHER, 'b.json': GOOD }
  }
}

test.each(Object.entries(LIES))('%s: nothing is kept, and the model stays', async (_, { document, files, ownPath }) => {
  const { node, share } = await victim()
  const pin = digestOf(document)
  const { info, peer } = await seeded(
    torrentName(pin),
    new Map([...Object.entries(files), [manifestPath(pin), ownPath ?? document]])
  )
  const before = node.blobs().sort()
  const companions = { digest: pin, infohash: formatInfohash(info.infohash) }
  const job = await node.importBt({
    ...pinned(share, { webseeds: [], manifestFromPeers: true, as: 'a/b' }),
    peers: [peer],
    companions
  })
  expect(job).toMatchObject({ state: 'done', result: { manifests: [share.manifestDigest] } })
  expect(job.result).not.toHaveProperty('companions')
  expect(job.result!.warnings).toHaveLength(1)
  expect(node.blobs().sort()).toEqual(before)
  expect(await node.client.open('svc:///a/b:q8_0')).not.toHaveProperty('companions')
})

test('the torrent that the document implies is fetched from the same peers', async () => {
  const { node, share } = await victim()
  const companions = sealCompanions({ files: [row('a.json', GOOD), row('b/c.json', OTHER)], omitted: [] })
  const contents = new Map([GOOD, OTHER].map((bytes) => [digestOf(bytes), bytes]))
  const files = companions.document.files.map(({ path, digest }) => [path, contents.get(digest)!] as const)
  const { info, peer } = await seeded(
    torrentName(companions.digest),
    new Map([...files, [manifestPath(companions.digest), companions.bytes]])
  )
  const { infohashText } = companionsTorrent(companions, (digest) => rootOf(contents.get(digest)!))
  expect(formatInfohash(info.infohash)).toBe(infohashText)
  const body = { ...pinned(share, { webseeds: [], manifestFromPeers: true, as: 'c/d' }), peers: [peer] }
  const job = await node.importBt({ ...body, companions: { digest: companions.digest, infohash: infohashText } })
  expect(job.result).toMatchObject({ companions: companions.digest, omitted: 0 })
  expect(job.result).not.toHaveProperty('warnings')
})

test('long names in a foreign document are shortened in messages', async () => {
  const { node, share } = await victim()
  const omitted = [{ path: `${'x'.repeat(500_000)}\u001b[2J`, size: 5, reason: 'large' as const }]
  const companions = sealCompanions({ files: [row('a.json', GOOD)], omitted })
  const { info, peer } = await seeded(
    torrentName(companions.digest),
    new Map<string, Bytes>([
      ['a.json', GOOD],
      [manifestPath(companions.digest), companions.bytes]
    ])
  )
  const body = { ...pinned(share, { webseeds: [], manifestFromPeers: true, as: 'long/names' }), peers: [peer] }
  const pin = { digest: companions.digest, infohash: formatInfohash(info.infohash) }
  const { result } = await node.importBt({ ...body, companions: pin })
  expect(result).toMatchObject({ companions: companions.digest, omitted: 1 })
  expect(result!.warnings).toHaveLength(1)
  expect(result!.warnings![0]!.length).toBeLessThan(2_000)
})

test('cancelling the wait for companions keeps the model, which is shared as usual', async () => {
  const seeder = await Node.start()
  const { companions: _, ...share } = await seeder.publish({ 'model-q8_0.gguf': weights(30_000, 92) })
  const node = await Node.start()
  const companions = { digest: digestOf(OTHER), infohash: `btmh:1220${'a'.repeat(64)}` }
  const job = await node.client.importBt({ ...pinned(share, { as: 'a/b' }), companions })
  await eventually(async () => ((await node.client.models()).namespaces.length > 0 ? true : undefined))
  await node.client.cancelJob(job.id)
  expect(await node.done(job)).toMatchObject({ state: 'failed', error: { code: 'E_ABORTED' } })
  await node.announced(share.manifestDigest)
  await node.expectWhole(share.manifestDigest)
})

test('a second pin that names the torrent of a shared model: the model stays', async () => {
  const { node, share } = await victim()
  await node.announced(share.manifestDigest)
  const companions = { digest: digestOf(GOOD), infohash: share.infohash }
  const job = await node.importBt({ ...pinned(share, { as: 'a/b' }), companions })
  expect(job).toMatchObject({ state: 'done', result: { manifests: [share.manifestDigest] } })
  expect(job.result!.warnings).toHaveLength(1)
  expect((await node.share(share.manifestDigest)).announced).toBe(true)
})

test.each([
  [{ digest: 'sha256:00', infohash: `btmh:1220${'0'.repeat(64)}` }],
  [{ digest: `sha256:${'0'.repeat(64)}`, infohash: '00' }],
  [{ digest: `sha256:${'0'.repeat(64)}` }]
])('a malformed pin is a bad request: %j', async (companions) => {
  const { node, share } = await victim()
  await expect(node.client.importBt({ ...pinned(share), companions: companions as never })).rejects.toMatchObject({
    code: 'E_BAD_REQUEST'
  })
})
