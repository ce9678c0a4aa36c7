import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer, get, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { parseManifest } from '@svc/manifest'
import type { Sha256Digest } from '@svc/ref'
import { expect, onTestFinished, test } from 'vitest'
import { writeFiles } from '../support/models.ts'
import { framed, u32 } from '../support/wire-bytes.ts'
import { contentOf, kindOf, startWebseed } from './fake-webseed.ts'
import { listeningTracker } from './listening-tracker.ts'
import { eventually, MIB, modelAlone, Node, pinned, refOf, weights } from './nodes.ts'

const small = (seed: number) => ({ 'model-q8_0.gguf': weights(2 * MIB, seed), 'config.json': '{"model_type":"llama"}' })

async function importPrivately(node: Node, seed: number): Promise<Sha256Digest> {
  const paths = [writeFiles(`${node.folder}/private-${seed}`, small(seed))]
  const job = await node.done(await node.client.importLocal({ paths, as: 'me/private', private: true }))
  expect(job.error).toBeUndefined()
  return job.result!.manifests[0] as Sha256Digest
}

/** What a stranger who knows everything of an artifact gets of it from this node. */
async function expectNothingGiven(node: Node, manifestDigest: string): Promise<void> {
  const held = await node.share(manifestDigest)
  expect(held.announced).toBe(false)
  for (const path of [
    `${held.name}/model-q8_0.gguf`,
    `${held.name}/manifest/${manifestDigest.replace(':', '-')}`,
    `bt/piece-layers/${held.infohash.slice(9)}`,
    `bt/${held.infohash.slice(9)}.torrent`
  ])
    expect((await fetch(`${held.webseeds[0]}${path}`)).status, path).toBe(404)
  const { swarm } = await node.client.status()
  expect(swarm.torrents.filter((torrent) => torrent.manifestDigest === manifestDigest)).toEqual([])
  expect(swarm.heldBack.map((each) => each.manifestDigest)).toContain(manifestDigest)
}

/**
 * The messages by which a node gives something to a peer that knows the infohash: an unchoke, blocks, hashes. It asks for them until
 * its last request is refused; while the node knows no such torrent, such as when it opens it anew, it asks again.
 */
async function givenTo(node: Node, infohash: string): Promise<number[]> {
  const received: number[] = []
  await eventually(async () => {
    received.push(...(await receivedFrom(node, infohash)))
    return received.includes(23) ? true : undefined
  })
  return received.filter((id) => [1, 7, 22].includes(id))
}

async function receivedFrom(node: Node, infohash: string): Promise<number[]> {
  const { swarm } = await node.client.status()
  const socket = connect(Number(swarm.peerAddress!.split(':')[1]), '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  socket.on('error', () => undefined)
  // reserved bits: the fast extension, so that refusals are told, and v2
  socket.write(
    Buffer.concat([
      Buffer.from('\x13BitTorrent protocol\0\0\0\0\0\0\0\x14', 'latin1'),
      Buffer.from(infohash.slice(9, 49), 'hex'),
      randomBytes(20)
    ])
  )
  socket.write(Buffer.concat([framed(2), framed(6, u32(0, 0, 16_384)), framed(21, Buffer.alloc(32), u32(0, 0, 2, 0))]))
  const received: number[] = []
  let held = Buffer.alloc(0)
  let shaken = false
  for await (const bytes of socket as AsyncIterable<Buffer>) {
    held = Buffer.concat([held, bytes])
    if (!shaken && held.length >= 68) {
      shaken = true
      held = held.subarray(68)
    }
    while (shaken && held.length >= 4 && held.length >= 4 + held.readUInt32BE()) {
      received.push(held[4]!)
      held = held.subarray(4 + held.readUInt32BE())
    }
    if (received.includes(23)) break
  }
  return received
}

test('a private import is not announced, also after a restart, and serves nobody', async () => {
  const node = await Node.start()
  const manifest = await importPrivately(node, 1)
  await expectNothingGiven(node, manifest)
  await node.stop()
  const again = await Node.start({ folder: node.folder })
  await again.verified()
  await expectNothingGiven(again, manifest)
  // one more import of the same files that does not say so changes nothing
  await again.importFiles(small(1))
  await expectNothingGiven(again, manifest)
})

test('with seed_local off, imports from disk are private unless they say otherwise', async () => {
  const node = await Node.start({ swarm: { seed_local: false } })
  await expectNothingGiven(node, await node.importFiles(small(2)))
  const paths = [writeFiles(`${node.folder}/open`, small(3))]
  const job = await node.done(await node.client.importLocal({ paths, as: 'me/open', private: false }))
  await node.announced(job.result!.manifests[0]!)
})

test('fetching a held-back model announces to no tracker, and contacts only the sources in the request', async () => {
  const { announces, trackers } = await listeningTracker()
  const source = await Node.start()
  const share = await source.publish(small(4))
  const known = await Node.start()
  const { artifacts } = known.running.context
  const manifestDigest = share.manifestDigest as Sha256Digest
  await artifacts.record({
    manifestDigest,
    source: { kind: 'hf', repo: 'org/gated', revision: 'a'.repeat(40) },
    provenance: { access: 'restricted', by: 'hub-token' },
    hints: { trackers: [], webseeds: [], peers: [] }
  })
  const fresh = await Node.start()
  const asked = pinned(share, { trackers })
  for (const [node, body] of [
    [known, asked],
    [fresh, { ...asked, private: true }]
  ] as const) {
    expect(await node.importBt(body)).toMatchObject({ state: 'done' })
    await node.expectWhole(manifestDigest)
    await expectNothingGiven(node, manifestDigest)
  }
  expect(announces).toEqual([])
  const open = await Node.start()
  expect(await open.importBt(asked)).toMatchObject({ state: 'done' })
  // the import itself waits for no tracker
  await eventually(async () => (announces.length > 0 ? true : undefined))
})

test('a private import is not announced while it looks for a peer with the manifest', async () => {
  const { announces, trackers } = await listeningTracker()
  const source = await Node.start({ swarm: { seed_on_import: true } })
  const share = await source.publish(small(41))
  const body = { ...pinned(share, { trackers, webseeds: [], peers: ['127.0.0.1:9'] }), manifestFromPeers: true }
  const node = await Node.start({ swarm: { fill_timeout: 1 } })
  expect(await node.importBt({ ...body, private: true })).toMatchObject({ state: 'failed' })
  // nor one of what is known here as withheld
  await node.running.context.artifacts.record({
    manifestDigest: share.manifestDigest as Sha256Digest,
    source: { kind: 'hf', repo: 'org/gated', revision: 'a'.repeat(40) },
    provenance: { access: 'restricted', by: 'hub-token' },
    hints: { trackers: [], webseeds: [], peers: [] }
  })
  expect(await node.importBt(body)).toMatchObject({ state: 'failed' })
  expect(announces).toEqual([])
  const open = await Node.start()
  const { id } = await open.client.importBt(body)
  await eventually(async () => (announces.length > 0 ? true : undefined))
  await open.client.cancelJob(id)
})

test('a pinned import with a name is a member of its index, under the quant of its model config', async () => {
  const source = await Node.start()
  const share = await source.publish(small(5))
  const node = await Node.start()
  const job = await node.importBt(pinned(share, { as: 'mine/pinned' }))
  expect(job).toMatchObject({ state: 'done', as: 'mine/pinned', ref: share.infohash, result: { quants: ['q8_0'] } })
  const resolved = await node.client.resolve('svc:///mine/pinned:q8_0')
  expect(resolved).toMatchObject({ manifestDigest: share.manifestDigest, indexDigest: job.result!.indexDigest })
  const manifest = parseManifest(Buffer.concat(await (await node.client.readBlob(share.manifestDigest)).body.toArray()))
  expect(manifest.files.map(({ kind }) => kind)).toEqual(['config', 'weights.gguf'])
  expect(await node.running.context.artifacts.read(share.manifestDigest as Sha256Digest)).toMatchObject({
    pinned: false
  })
})

test('a model made private leaves at once, and returns when it is no longer private', async () => {
  const node = await Node.start()
  const share = await node.publish(small(6))
  const ref = 'me/model:q8_0'
  expect(await node.client.setPrivate({ ref, private: true })).toMatchObject({
    manifestDigest: share.manifestDigest,
    private: true
  })
  await expectNothingGiven(node, share.manifestDigest)
  expect((await node.client.models()).namespaces[0]!.members).toMatchObject([{ quant: 'q8_0', private: true }])
  await node.client.setPrivate({ ref, private: false })
  await node.announced(share.manifestDigest)
})

test('a running webseed response ends when the model is made private', async () => {
  const node = await Node.start()
  // more than the sockets of both sides take
  const { manifestDigest, webseeds, name } = await node.publish({ 'model-q8_0.gguf': weights(32 << 20, 71) })
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    get(new URL(`${name}/model-q8_0.gguf`, webseeds[0]), resolve).on('error', reject)
  })
  expect(answer.statusCode).toBe(200)
  await node.client.setPrivate({ ref: refOf(manifestDigest), private: true })
  answer.resume()
  await new Promise((resolve) => answer.on('error', () => undefined).once('close', resolve))
  expect(answer.complete).toBe(false)
})

test('a model made private while it is fetched is no longer announced, and the fetch continues quietly', async () => {
  const publisher = await Node.start()
  const share = modelAlone(await publisher.publish(small(8)))
  // a tracker that notes what it hears, and a source that stops in the midst of the weights.
  const heard: string[] = []
  const tracker = createServer((request, response) => {
    heard.push(new URL(request.url!, 'http://tracker').searchParams.get('event') ?? 'regular')
    response.end('d8:intervali1800e5:peers0:e')
  })
  await new Promise<void>((resolve) => tracker.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void tracker.close())
  let isReleased = false
  const held: ServerResponse[] = []
  const source = await startWebseed(await contentOf(share), (path, _request, response) => {
    if (isReleased || kindOf(path) !== 'file' || !path.endsWith('.gguf')) return false
    held.push(response)
    return true
  })
  const node = await Node.start()
  const { port } = tracker.address() as AddressInfo
  const job = await node.client.importBt(
    pinned(share, { webseeds: [source.url], peers: [], trackers: [`http://127.0.0.1:${port}/announce`] })
  )
  const { manifestDigest } = share
  await eventually(() => (heard.includes('started') ? true : undefined))
  await node.client.setPrivate({ ref: refOf(manifestDigest), private: true })
  await eventually(() => (heard.at(-1) === 'stopped' ? true : undefined))
  const before = heard.length
  expect(await givenTo(node, share.infohash)).toEqual([])
  isReleased = true
  for (const response of held) response.destroy()
  expect(await node.done(job)).toMatchObject({ state: 'done', manifest: manifestDigest })
  await node.expectWhole(manifestDigest)
  await expectNothingGiven(node, manifestDigest)
  expect(heard.slice(before)).toEqual([])
})

test('a seeded model leaves the swarm when a pinned import makes it private', async () => {
  const source = await Node.start()
  const share = await source.publish(small(9))
  const node = await Node.start()
  expect(await node.importBt(pinned(share))).toMatchObject({ state: 'done' })
  await node.announced(share.manifestDigest)
  expect(await node.importBt(pinned(share, { private: true }))).toMatchObject({ state: 'done' })
  await expectNothingGiven(node, share.manifestDigest)
})

test('a removed model leaves the swarm at once, and a restart does not announce it again', async () => {
  const node = await Node.start()
  const share = await node.publish(small(7))
  const removed = await node.client.removeModel({ ns: 'me', name: 'model', quant: 'q8_0' })
  expect(removed.quants).toMatchObject([{ manifest: share.manifestDigest, needed: false }])
  expect(await node.share(share.manifestDigest)).toMatchObject({ announced: false })
  await node.stop()
  const again = await Node.start({ folder: node.folder })
  await again.verified()
  expect((await again.client.status()).swarm).toMatchObject({ seeding: 0, torrents: [] })
  await again.expectWhole(share.manifestDigest)
  expect((await again.done(await again.client.gc({ graceSeconds: 0 }))).state).toBe('done')
  expect(again.blobs()).toEqual([])
})

test('a replaced artifact leaves the swarm at once, unless another name needs it', async () => {
  const node = await Node.start()
  const share = await node.publish(small(8))
  // somebody asked for its path: that keeps its bytes, and is no reason to give it to others
  await node.client.makeView({ ref: `svc:///me/model@${share.manifestDigest}` })
  await node.importFiles(small(8), 'other/name')
  await node.importFiles(small(9))
  // another name has the first one still
  expect(await node.share(share.manifestDigest)).toMatchObject({ announced: true })
  await node.importFiles(small(10), 'other/name')
  await eventually(async () => ((await node.share(share.manifestDigest)).announced ? undefined : true))
  expect((await node.client.status()).swarm.torrents.map(({ manifestDigest }) => manifestDigest)).not.toContain(
    share.manifestDigest
  )
})

test('a model with a damaged record is served to nobody, even if its name was shared before', async () => {
  const first = await Node.start()
  const share = await first.publish(small(7))
  const path = `${share.name}/manifest/${share.manifestDigest.replace(':', '-')}`
  expect((await fetch(`${(await first.addresses()).webseed}${path}`)).status).toBe(200)
  await first.stop()
  const file = `${first.root}/state/artifacts/${share.manifestDigest.slice(7)}.json`
  const bytes = readFileSync(file)
  bytes[bytes.length >> 1]! ^= 1
  writeFileSync(file, bytes)
  const node = await Node.start({ folder: first.folder })
  await node.verified()
  expect(await node.client.joinShare(refOf(share.manifestDigest))).toMatchObject({ announced: false })
  expect((await fetch(`${(await node.addresses()).webseed}${path}`)).status).toBe(404)
  expect((await node.client.status()).swarm.torrents).toEqual([])
})

test('a pinned manifest that names a private file withholds its bytes, also after a restart', async () => {
  const source = await Node.start()
  const files = small(77)
  const share = await source.publish({ ...files, 'tokenizer.json': '{"version":"2.0"}' })
  const node = await Node.start()
  const paths = [writeFiles(`${node.folder}/own`, files)]
  expect((await node.done(await node.client.importLocal({ paths, as: 'me/own', private: true }))).error).toBeUndefined()
  expect((await node.importBt(pinned(share, { as: 'me/pinned' }))).error).toBeUndefined()
  await node.expectWhole(share.manifestDigest)
  const { provenance } = (await node.running.context.artifacts.read(share.manifestDigest as Sha256Digest))!
  expect(provenance.unproven).toEqual(['model-q8_0.gguf', 'modelconfig.json'])
  await expectNothingGiven(node, share.manifestDigest)
  await node.stop()
  const again = await Node.start({ folder: node.folder })
  await again.verified()
  expect((await again.share(share.manifestDigest)).announced).toBe(false)
  await again.client.setPrivate({ ref: `svc:///by/digest@${share.manifestDigest}`, private: false })
  await again.announced(share.manifestDigest)
})
