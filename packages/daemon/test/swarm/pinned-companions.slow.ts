// The second pin of a share: what lies beside a model travels with it, between two daemons (spec doc.22, swarm.20).
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { ShareResult } from '@svc/client/protocol'
import type { Sha256Digest } from '@svc/ref'
import { expect, test } from 'vitest'
import { openSwarm } from '../../src/app/open-swarm.ts'
import { sharedByFile } from '../support/daemon.ts'
import { contentOf, kindOf, startWebseed } from './fake-webseed.ts'
import { listeningTracker } from './listening-tracker.ts'
import { type Node as DaemonNode, eventually, modelAlone, Node, type NodeOptions, pinned, weights } from './nodes.ts'

const BESIDE = {
  'generation_config.json': '{"temperature":0.6}',
  '1_Pooling/config.json': '{"pooling_mode_cls_token":true}',
  '1_Normalize/config.json': '{"pooling_mode_cls_token":true}',
  'README.md': '# x\n'.repeat(30_000),
  LICENSE: 'do what you like\n',
  NOTICE: ''
}
const CONFIG = { 'config.json': '{"model_type":"bert"}' }
const MODEL = { 'model-q8_0.gguf': weights(70_000, 81), ...CONFIG, ...BESIDE }
/** What no loader reads stays with its owner. */
const OWN = { 'notes.txt': 'mine' }

/** Waits for companions only a moment. */
const IMPATIENT: NodeOptions = {
  more: { networks: { swarm: (context) => openSwarm(context, { companionsTimeoutMs: 1_000 }) } }
}

const served = sharedByFile(async (cleanUp) => {
  const node = await Node.start({}, cleanUp)
  await node.publish({ ...MODEL, ...OWN })
  return { node, share: await shareOf(node) }
})
const shareOf = (node: DaemonNode, ref = 'svc:///me/model:q8_0'): Promise<ShareResult> => node.client.share(ref)

/** Paths and digests of what lies beside a model. */
async function besideOf(node: DaemonNode, ref: string) {
  const { companions } = await node.client.open(ref)
  for (const { digest, blobPath } of companions?.files ?? [])
    expect(`sha256:${createHash('sha256').update(readFileSync(blobPath)).digest('hex')}`).toBe(digest)
  return companions && { digest: companions.digest, files: companions.files.map(({ path, digest }) => [path, digest]) }
}

/** Where the webseed of a daemon has the torrent of its companions. */
const torrentAt = ({ webseeds: [webseed], companions }: ShareResult): string =>
  `${webseed}bt/${companions!.infohash.slice('btmh:1220'.length)}.torrent`

test.each([
  ['peers', { webseeds: [], manifestFromPeers: true }],
  ['a webseed', { peers: [] }]
])('by %s: all of them arrive, and are passed on', async (_, hints) => {
  const { node, share } = await served()
  expect(share.command).toContain(` --companions ${share.companions!.digest}@${share.companions!.infohash}`)
  const other = await Node.start()
  const job = await other.importBt(pinned(share, { ...hints, as: 'their/model' }))
  expect(job).toMatchObject({ state: 'done', result: { companions: share.companions!.digest, omitted: 0 } })
  expect(job.result).not.toHaveProperty('warnings')
  const given = await besideOf(other, 'svc:///their/model:q8_0')
  expect(given!.files.map(([path]) => path)).toEqual(Object.keys({ ...BESIDE, ...CONFIG }).sort())
  const own = await besideOf(node, 'svc:///me/model:q8_0')
  expect(own!.files.filter(([path]) => path !== 'notes.txt')).toEqual(given!.files)
  expect(own!.files).toHaveLength(given!.files.length + 1)
  // the folder is the one that came in
  const { folder } = await other.client.makeView({ ref: 'svc:///their/model:q8_0' })
  for (const [name, content] of Object.entries(MODEL))
    expect([name, readFileSync(`${folder}/${name}`).equals(Buffer.from(content))]).toEqual([name, true])
  const again = await other.announced(share.manifestDigest)
  expect(again.companions).toEqual(share.companions)
  const third = await Node.start()
  expect(await third.importBt(pinned(again, { ...hints, manifestFromPeers: true }))).toMatchObject({
    state: 'done',
    result: { companions: share.companions!.digest }
  })
  expect(await besideOf(third, `svc:///any/name@${share.manifestDigest}`)).toEqual(given)
  for (const each of [node, other, third]) await each.expectWhole(share.manifestDigest)
  // what peers have of them outlives a collection
  await node.done(await node.client.gc({ graceSeconds: 0 }))
  expect((await fetch(torrentAt(share))).status).toBe(200)
  expect(node.blobs()).toContain(share.companions!.digest)
})

test.each([
  ['with a name', { as: 'their/model' }],
  ['without one', {}]
])('a pinned import %s that was interrupted: whoever fetches the rest fetches them once', async (_, as) => {
  const { share } = await served()
  let isOpen = false
  const webseed = await startWebseed(await contentOf(share), (path) => !isOpen && kindOf(path) === 'file')
  const node = await Node.start()
  await node.client.importBt(pinned(share, { webseeds: [webseed.url], peers: [], ...as }))
  await eventually(() => (webseed.requests.some((path) => kindOf(path) === 'file') ? true : undefined))
  await node.stop()
  isOpen = true
  const again = await Node.start({ folder: node.folder })
  const { artifacts } = again.running.context
  const digest = share.manifestDigest as Sha256Digest
  const before = (await artifacts.read(digest))!
  // as if its tracker had told of the peer since
  await artifacts.record({ ...before, hints: { ...before.hints, peers: [...share.peers] } })
  const job = await again.ensure(digest)
  expect(job).toMatchObject({ state: 'done', result: { companions: share.companions!.digest, omitted: 0 } })
  expect(job.result).not.toHaveProperty('warnings')
  expect((await besideOf(again, `svc:///any/name@${digest}`))?.digest).toBe(share.companions!.digest)
  expect(await artifacts.read(digest)).not.toHaveProperty('futureCompanions')
})

test('a fill from a source without companions succeeds, and warns', async () => {
  const { share } = await served()
  let isOpen = false
  const webseed = await startWebseed(await contentOf(share), (path) => !isOpen && kindOf(path) === 'file')
  const node = await Node.start()
  await node.client.importBt(pinned(share, { webseeds: [webseed.url], peers: [], as: 'their/model' }))
  await eventually(() => (webseed.requests.some((path) => kindOf(path) === 'file') ? true : undefined))
  await node.stop()
  isOpen = true
  const again = await Node.start({ folder: node.folder, ...IMPATIENT })
  const job = await again.ensure(share.manifestDigest)
  expect(job).toMatchObject({
    state: 'done',
    result: { warnings: [expect.stringContaining(`--companions ${share.companions!.digest}@`)] }
  })
  // who removes the name wants them no longer
  const { artifacts } = again.running.context
  const digest = share.manifestDigest as Sha256Digest
  expect(await artifacts.read(digest)).toHaveProperty('futureCompanions')
  await again.client.removeModel({ ns: 'their', name: 'model' })
  expect((await artifacts.read(digest))?.futureCompanions).toBeUndefined()
})

test('an old peer has only the model: the import succeeds, and warns with the command for the rest', async () => {
  const { share } = await served()
  const old = await Node.start({ swarm: { webseed_addr: '' } })
  const first = await old.importBt({ ...pinned(modelAlone(share)), as: 'their/model' })
  expect(first.state).toBe('done')
  const theirs = await old.announced(share.manifestDigest)
  expect(theirs).not.toHaveProperty('companions')
  const other = await Node.start(IMPATIENT)
  const body = pinned({ ...theirs, companions: share.companions! }, { manifestFromPeers: true, as: 'their/model' })
  const job = await other.importBt(body)
  expect(job).toMatchObject({ state: 'done', result: { manifests: [share.manifestDigest] } })
  expect(job.result).not.toHaveProperty('companions')
  expect(job.result!.warnings).toEqual([expect.stringContaining(`--companions ${share.companions!.digest}@`)])
  // the same import, when somebody has them
  const later = await other.importBt({ ...body, peers: [...share.peers] })
  expect(later.result).toMatchObject({ companions: share.companions!.digest })
  expect(later.result).not.toHaveProperty('warnings')
})

test('are announced with their artifact, and never alone', async () => {
  const node = await Node.start()
  const { manifestDigest } = await node.publish(MODEL)
  const share = await shareOf(node)
  const ref = 'svc:///me/model:q8_0'
  const fetched = async (): Promise<boolean> => {
    const other = await Node.start({ ...IMPATIENT, swarm: { webseed_addr: '' } })
    const { share: whole } = await served()
    // the model from elsewhere, so that only its companions are asked of this one
    expect((await other.importBt({ ...pinned(modelAlone(whole)), as: 'a/b' })).state).toBe('done')
    const job = await other.importBt(pinned(share, { webseeds: [], manifestFromPeers: true, as: 'a/b' }))
    await other.stop()
    return job.result?.companions !== undefined
  }
  expect(await fetched()).toBe(true)
  const webseed = torrentAt(share)
  expect((await fetch(webseed)).status).toBe(200)
  await node.client.setPrivate({ ref, private: true })
  expect((await fetch(webseed)).status).toBe(404)
  expect(await fetched()).toBe(false)
  await node.client.setPrivate({ ref, private: false })
  await eventually(async () => ((await fetch(webseed)).status === 200 ? true : undefined))
  // a second name brings others
  const again = await node.importFiles({ ...MODEL, 'README.md': '# another' }, 'me/second')
  expect(again).toBe(manifestDigest)
  const other = await eventually(async () => {
    const { companions } = await shareOf(node, 'svc:///me/second:q8_0')
    const at = torrentAt({ ...share, companions: companions! })
    return (await fetch(at)).status === 200 ? companions : undefined
  })
  expect(other).not.toEqual(share.companions)
  expect((await fetch(webseed)).status).toBe(200)
  // a name that is removed takes them with it
  await node.client.removeModel({ ns: 'me', name: 'second' })
  const second = torrentAt({ ...share, companions: other! })
  await eventually(async () => ((await fetch(second)).status === 404 ? true : undefined))
  expect((await fetch(webseed)).status).toBe(200)
  await node.done(await node.client.gc({ graceSeconds: 0 }))
  expect(node.blobs()).not.toContain(other!.digest)
  expect((await besideOf(node, ref))!.files.map(([path]) => path)).toEqual(Object.keys({ ...BESIDE, ...CONFIG }).sort())
  await node.client.removeModel({ ns: 'me', name: 'model' })
  expect((await fetch(webseed)).status).toBe(404)
})

test('a daemon that starts again announces them', async () => {
  const first = await Node.start()
  await first.publish(MODEL)
  await first.stop()
  const node = await Node.start({ folder: first.folder })
  await node.verified()
  const share = await shareOf(node)
  const other = await Node.start()
  expect((await other.importBt(pinned(share, { as: 'a/b' }))).result).toMatchObject({
    companions: share.companions!.digest
  })
})

test('two imports at once both have them, and they are passed on', async () => {
  const { share } = await served()
  const other = await Node.start()
  const bodies = ['a/b', 'c/d'].map((as) => pinned(share, { as }))
  for (const job of await Promise.all(bodies.map((body) => other.importBt(body)))) {
    expect(job).toMatchObject({ state: 'done', result: { companions: share.companions!.digest } })
    expect(job.result).not.toHaveProperty('warnings')
  }
  const { webseeds } = await shareOf(other, 'svc:///a/b:q8_0')
  await eventually(async () => ((await fetch(torrentAt({ ...share, webseeds }))).status === 200 ? true : undefined))
})

test('a private import does not share them', async () => {
  const { share } = await served()
  const { announces, trackers } = await listeningTracker()
  const quiet = await Node.start()
  const job = await quiet.importBt(pinned(share, { as: 'a/b', private: true, trackers }))
  expect(announces).toEqual([])
  expect(job.result).toMatchObject({ companions: share.companions!.digest })
  const { webseeds } = await shareOf(quiet, 'svc:///a/b:q8_0')
  expect((await fetch(torrentAt({ ...share, webseeds }))).status).toBe(404)
})
