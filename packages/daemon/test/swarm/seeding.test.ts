import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Sha256Digest } from '@svc/ref'
import { expect, onTestFinished, test } from 'vitest'
import type { SwarmClient } from '../../../sharing/src/swarm-client.ts'
import { type ConfiguredSwarmDeps, openSwarm } from '../../src/app/open-swarm.ts'
import { createLog } from '../../src/log.ts'
import { contentOf, documentsOnly, startWebseed } from './fake-webseed.ts'
import { eventually, MIB, Node, pinned, refOf, weights } from './nodes.ts'

const small = (seed: number) => ({ 'model-q8_0.gguf': weights(100_000, seed), 'tokenizer.json': `{"seed":${seed}}` })

function corrupt(node: Node, digest: string): void {
  const path = node.blobPath(digest)
  const bytes = readFileSync(path)
  bytes[bytes.length >> 1]! ^= 1
  chmodSync(path, 0o644)
  writeFileSync(path, bytes)
}

/** Digest of the weights of an artifact. */
async function weightsOf(node: Node, manifestDigest: string): Promise<string> {
  return (await node.client.open(refOf(manifestDigest))).files.find(({ kind }) => kind?.startsWith('weights'))!.digest
}

test('imports join at the next start, as the share says; with seed_on_import they join at once', async () => {
  const swarm = { seed_on_import: false }
  const node = await Node.start({ swarm })
  const manifest = await node.importFiles(small(1))
  const before = await node.share(manifest)
  expect(before).toMatchObject({ announced: false, note: expect.stringContaining('seed_on_import') })
  expect((await node.client.status()).swarm).toMatchObject({ enabled: true, seed: true, seeding: 0, torrents: [] })
  const { webseed } = await node.addresses()
  expect((await fetch(`${webseed}${before.name}/manifest/sha256-${manifest.slice(7)}`)).status).toBe(404)
  await node.stop()

  const again = await Node.start({ folder: node.folder, swarm })
  await again.announced(manifest)
  expect((await again.client.status()).swarm).toMatchObject({
    seeding: 1,
    torrents: [{ manifestDigest: manifest, state: 'seeding' }]
  })
  await again.stop()

  const eager = await Node.start({ folder: node.folder })
  const second = await eager.importFiles(small(2), 'me/second')
  await eager.announced(second)
})

test('a corrupt blob found at the start is quarantined, and only its artifact is not announced; unless no_seed_verify', async () => {
  const swarm = { seed_on_import: false }
  const node = await Node.start({ swarm })
  const [bad, good] = [await node.importFiles(small(3), 'me/bad'), await node.importFiles(small(4), 'me/good')]
  const digest = await weightsOf(node, bad)
  await node.stop()
  corrupt(node, digest)

  const unsafe = await Node.start({ folder: node.folder, swarm: { ...swarm, no_seed_verify: true } })
  expect((await unsafe.client.status()).swarm.seeding).toBe(2)
  await unsafe.stop()

  const again = await Node.start({ folder: node.folder, swarm })
  await again.verified()
  expect((await again.client.status()).swarm).toMatchObject({ seeding: 1, torrents: [{ manifestDigest: good }] })
  expect(await again.share(bad)).toMatchObject({ announced: false })
  expect((await again.client.open(refOf(bad))).missing).toEqual([digest])
  expect(readdirSync(join(node.root, 'quarantine')).length).toBeGreaterThan(0)
  expect(existsSync(node.blobPath(digest))).toBe(false)
})

test('seed = false fetches and serves nothing', async () => {
  const source = await Node.start()
  const share = await source.publish(small(5))
  const node = await Node.start({ swarm: { seed: false } })
  expect(await node.importBt(pinned(share))).toMatchObject({ state: 'done' })
  const own = await node.share(share.manifestDigest)
  expect(own).toMatchObject({ announced: false, webseeds: [], note: expect.stringContaining('seed') })
  expect((await node.client.status()).swarm).toMatchObject({ enabled: true, seed: false, seeding: 0, torrents: [] })
  expect((await node.client.status()).swarm.webseedAddress).toBeUndefined()
  const documents = await startWebseed(await contentOf(share), documentsOnly)
  const third = await Node.start({ swarm: { fill_timeout: 1 } })
  const job = await third.importBt(pinned(share, { webseeds: [documents.url], peers: [...own.peers] }))
  expect(job).toMatchObject({ state: 'failed', error: { code: 'E_SOURCE_UNAVAILABLE' } })
})

test('a model that needed a token is withheld from peers and webseed, unless seed_restricted', async () => {
  const node = await Node.start({ swarm: { seed_on_import: false } })
  const manifest = await node.importFiles(small(6))
  const { artifacts } = node.running.context
  const state = (await artifacts.read(manifest))!
  await artifacts.record({
    ...state,
    source: { kind: 'hf', repo: 'org/gated', revision: 'a'.repeat(40) },
    provenance: { access: 'restricted', by: 'hub-token' }
  })
  await node.stop()

  const holding = await Node.start({ folder: node.folder })
  expect((await holding.client.status()).swarm).toMatchObject({
    seeding: 0,
    torrents: [],
    heldBack: [{ manifestDigest: manifest, reason: expect.stringContaining('seed_restricted') }]
  })
  const held = await holding.share(manifest)
  expect(held).toMatchObject({ announced: false, note: expect.stringContaining('seed_restricted') })
  for (const path of [
    `${held.name}/model-q8_0.gguf`,
    `bt/piece-layers/${held.infohash.slice(9)}`,
    `bt/${held.infohash.slice(9)}.torrent`
  ]) {
    expect((await fetch(`${held.webseeds[0]}${path}`)).status, path).toBe(404)
  }
  // an import by the pin does not make it public: it says nothing of where the model came from
  const open = await Node.start()
  const share = await open.publish(small(6))
  expect(share.manifestDigest).toBe(manifest)
  expect(await holding.importBt(pinned(share))).toMatchObject({ state: 'done' })
  expect(await holding.share(manifest)).toMatchObject({ announced: false })
  await holding.stop()

  const giving = await Node.start({ folder: node.folder, swarm: { seed_restricted: true } })
  await giving.announced(manifest)
  expect((await giving.client.status()).swarm).toMatchObject({ seeding: 1, heldBack: [] })
})

test('a seeded model leaves at once when another import of it needed a token', async () => {
  let client: SwarmClient
  const node = await Node.start({
    more: { networks: { swarm: async (context) => (client = await openSwarm(context)) } }
  })
  const { manifestDigest } = await node.publish(small(11))
  const { artifacts } = node.running.context
  await artifacts.record({
    ...(await artifacts.read(manifestDigest as Sha256Digest))!,
    source: { kind: 'hf', repo: 'org/gated', revision: 'a'.repeat(40) },
    provenance: { access: 'restricted', by: 'hub-token' }
  })
  client!.imported(manifestDigest as Sha256Digest)
  await eventually(async () => ((await node.client.status()).swarm.seeding === 0 ? true : undefined))
  expect((await node.client.status()).swarm.heldBack).toMatchObject([{ manifestDigest }])
})

test('a restricted artifact serves nothing, even during a repair', async () => {
  const source = await Node.start()
  const share = await source.publish({ 'model-q8_0.gguf': weights(3 * MIB, 7) })
  const node = await Node.start()
  const manifest = await node.importFiles({ 'model-q8_0.gguf': weights(3 * MIB, 7) })
  const { artifacts } = node.running.context
  const state = (await artifacts.read(manifest))!
  await artifacts.record({
    ...state,
    source: { kind: 'hf', repo: 'org/gated', revision: 'a'.repeat(40) },
    provenance: { access: 'restricted', by: 'hub-token' },
    hints: { trackers: [], webseeds: [], peers: share.peers }
  })
  corrupt(node, await weightsOf(node, manifest))
  await node.done(await node.client.verify({ target: 'all' }))
  expect(await node.ensure(manifest)).toMatchObject({ state: 'done' })
  expect(await node.share(manifest)).toMatchObject({ announced: false })
  expect((await node.client.status()).swarm.torrents).toEqual([])
})

test('the start ends at its limit, and the verification continues in the background, with progress in the status', async () => {
  const node = await Node.start({ swarm: { seed_on_import: false } })
  const manifests = [
    await node.importFiles({ 'model-q8_0.gguf': weights(24 * MIB, 8) }),
    await node.importFiles(small(9), 'me/second')
  ]
  const large = await weightsOf(node, manifests[0]!)
  await node.stop()
  // it is not done before somebody can ask how far it is.
  const { promise: heard, resolve: letGo } = Promise.withResolvers<void>()
  const swarm = (context: ConfiguredSwarmDeps): Promise<SwarmClient> => {
    const verify = context.store.verify.bind(context.store)
    context.store.verify = async (digest, options) => {
      if (digest === large) await heard
      return verify(digest, options)
    }
    return openSwarm(context, { startLimitMs: 0 })
  }
  const again = await Node.start({ folder: node.folder, more: { networks: { swarm } } })
  onTestFinished(() => letGo())
  const { artifactsTotal, bytesTotal, bytesDone } = await eventually(async () => {
    const { verifying } = (await again.client.status()).swarm
    return verifying?.artifactsDone === 1 ? verifying : undefined
  })
  expect(artifactsTotal).toBe(2)
  expect(bytesDone).toBeGreaterThan(0)
  expect(bytesTotal - bytesDone).toBeGreaterThanOrEqual(24 * MIB)
  expect(await again.share(manifests[0]!)).toMatchObject({ announced: false })
  letGo()
  await again.verified()
  for (const manifest of manifests) expect(await again.share(manifest)).toMatchObject({ announced: true })
})

test('a share during the start-up verification announces nothing before that is done', async () => {
  const node = await Node.start({ swarm: { seed_on_import: false } })
  const good = await node.importFiles({ 'model-q8_0.gguf': weights(24 * MIB, 8) })
  const bad = await node.importFiles({ 'model-q8_0.gguf': weights(24 * MIB, 9) }, 'me/second')
  corrupt(node, await weightsOf(node, bad))
  await node.stop()
  const again = await Node.start({
    folder: node.folder,
    more: { networks: { swarm: (context) => openSwarm(context, { startLimitMs: 0 }) } }
  })
  // before, while and after it is found to be corrupt
  const shares = await Promise.all([bad, bad, good, bad].map((manifest) => again.client.joinShare(refOf(manifest))))
  for (const { manifestDigest, announced } of shares) if (manifestDigest === bad) expect(announced).toBe(false)
  await again.announced(good)
  await again.verified()
  expect(await again.share(bad)).toMatchObject({ announced: false })
  expect((await again.client.status()).swarm.torrents.map(({ manifestDigest }) => manifestDigest)).toEqual([good])
})

test('simultaneous joins of one artifact are one, and log no error', async () => {
  const lines: { readonly level: string }[] = []
  const log = createLog('info', 'json', { write: (line) => void lines.push(JSON.parse(line)) })
  const node = await Node.start({ swarm: { seed_on_import: false }, more: { log } })
  const manifest = await node.importFiles(small(3))
  // a new store is worth a warning
  lines.length = 0
  const shares = await Promise.all(Array.from({ length: 20 }, () => node.client.joinShare(refOf(manifest))))
  for (const share of shares) expect(share).toMatchObject({ announced: true })
  expect((await node.client.status()).swarm.seeding).toBe(1)
  expect(lines.filter(({ level }) => level === 'error' || level === 'warn')).toEqual([])
})

/** A node whose artifacts stop at a question on their way into the swarm: whether names permit it is asked twice. */
async function stoppedJoin(question: number): Promise<{ node: Node; isAsked: Promise<void>; letGo: () => void }> {
  const [asked, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let questions = 0
  const swarm = (context: ConfiguredSwarmDeps): Promise<SwarmClient> => {
    const isGiven = async (digest: Sha256Digest): Promise<boolean> => {
      const given = await context.needed.isGiven(digest)
      if (++questions !== question) return given
      asked.resolve()
      await released.promise
      return given
    }
    return openSwarm({ ...context, needed: { isGiven } })
  }
  onTestFinished(() => released.resolve())
  const node = await Node.start({ swarm: { seed_on_import: false }, more: { networks: { swarm } } })
  return { node, isAsked: asked.promise, letGo: released.resolve }
}

test.each([1, 2])('a model made private while it joins is not in the swarm afterwards (%i)', async (question) => {
  const { node, isAsked, letGo } = await stoppedJoin(question)
  const manifest = await node.importFiles(small(12))
  const share = node.client.joinShare(refOf(manifest))
  await isAsked
  const made = node.client.setPrivate({ ref: refOf(manifest), private: true })
  const { artifacts } = node.running.context
  await eventually(async () => ((await artifacts.read(manifest))?.provenance.decision ? true : undefined))
  // where nothing of the join is known yet, that alone is done before it goes on
  if (question === 1) await made
  letGo()
  await made
  expect(await node.share(manifest)).toMatchObject({ announced: false })
  await share
  expect(await node.share(manifest)).toMatchObject({ announced: false })
  expect((await node.client.status()).swarm).toMatchObject({ seeding: 0, heldBack: [{ manifestDigest: manifest }] })
})

test('a model made private at the end of its fetch does not become a seed', async () => {
  const source = await Node.start()
  const share = await source.publish(small(13))
  const { node, isAsked, letGo } = await stoppedJoin(1)
  const job = await node.client.importBt(pinned(share))
  await isAsked
  await node.client.setPrivate({ ref: refOf(share.manifestDigest), private: true })
  letGo()
  expect(await node.done(job)).toMatchObject({ state: 'done' })
  expect(await node.share(share.manifestDigest)).toMatchObject({ announced: false })
  expect((await node.client.status()).swarm).toMatchObject({ seeding: 0 })
})
