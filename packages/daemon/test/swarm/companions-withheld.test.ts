// Companions that may not leave are announced at no moment, whoever is slow to take their artifact out of the swarm (spec swarm.20, add.37).
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createSwarm } from '@svc/swarm'
import { expect, onTestFinished, test } from 'vitest'
import { AnswerReader } from '../../../sharing/src/answers.ts'
import { ArtifactSwarm } from '../../../sharing/src/artifact-swarm.ts'
import { ArtifactTorrents } from '../../../sharing/src/artifact-torrents.ts'
import { CompanionsSwarm } from '../../../sharing/src/companions-swarm.ts'
import { createLog } from '../../src/log.ts'
import { temporaryFolder } from '../support/daemon.ts'
import { startWebseed } from './fake-webseed.ts'
import { Node, pinned, weights } from './nodes.ts'

const MODEL = { 'model-q8_0.gguf': weights(70_000, 83), 'generation_config.json': '{"temperature":0.6}' }
const REF = 'svc:///me/model:q8_0'

test('an artifact that has just become withheld announces no companions', async () => {
  const node = await Node.start({ swarm: { seed_on_import: false } })
  const manifest = await node.importFiles(MODEL)
  const { store, leafLayers, documents, artifacts, holdings, config } = node.running.context
  const engine = await createSwarm({ peerAddress: { host: '127.0.0.1', port: 0 }, dht: false, lsd: false })
  onTestFinished(() => engine.close())
  const torrents = new ArtifactTorrents({ store, documents, leafLayers, answers: new AnswerReader() })
  const log = createLog('silent')
  const parts = { store, leafLayers, holdings, swarm: engine, webseed: () => undefined, trackers: [], log }
  const [swarm, beside] = [new ArtifactSwarm(parts), new ArtifactSwarm(parts)]
  const companions = new CompanionsSwarm({
    artifacts,
    torrents,
    swarm,
    beside,
    isFetching: () => false,
    settings: config.swarm,
    log
  })
  onTestFinished(() => companions.close())
  const torrent = (await torrents.of(manifest))!
  const { hints, companions: named } = (await artifacts.read(manifest))!
  const layers = await torrents.layersOf(torrent, undefined, new AbortController().signal)
  await swarm.join(torrent, { layers, hints, seedOnly: true, upload: true })
  await companions.follow(manifest)
  expect(beside.joined.size).toBe(1)
  // as fetching them with a token records it, before anybody withdraws the artifact
  const facts = { access: 'restricted', by: 'hub-token' } as const
  await artifacts.addCompanions(manifest, 'me/other', { digest: named!['me/model']!, facts })
  await companions.follow(manifest)
  expect(swarm.joined.get(manifest)?.seeding).toBe(true)
  expect(beside.joined.size).toBe(0)
})

test('companions that came with a key stay withheld when the owner shares the model', async () => {
  const seeder = await Node.start()
  await seeder.publish(MODEL)
  const share = await seeder.client.share(REF)
  const { companions: _, ...alone } = share
  const torrentAt = `/bt/${share.companions!.infohash.slice('btmh:1220'.length)}.torrent`
  const torrent = Buffer.from(await (await fetch(new URL(torrentAt, share.webseeds[0]))).arrayBuffer())
  const bucket = await startWebseed(new Map([[torrentAt, torrent]]), (_path, request, response) => {
    if (request.headers.authorization !== undefined) return false
    response.writeHead(403).end()
    return true
  })
  const keys = join(temporaryFolder(), 'keys')
  writeFileSync(keys, '[default]\naws_access_key_id = AKIAEXAMPLE\naws_secret_access_key = hush\n', { mode: 0o600 })
  const swarm = { dht: false, peer_addr: '127.0.0.1:0', seed_on_import: true }
  const node = await Node.start({
    more: { fileConfig: { swarm, webseed: { [bucket.url]: { credentials_file: keys } } } }
  })
  expect((await node.importBt(pinned(alone, { as: 'me/model' }))).state).toBe('done')
  await node.client.setPrivate({ ref: REF, private: true })
  const job = await node.importBt(pinned(share, { as: 'me/model', webseeds: [bucket.url] }))
  expect(job.result).toMatchObject({ companions: share.companions!.digest })
  await node.client.setPrivate({ ref: REF, private: false })
  expect(await node.client.share(REF)).toMatchObject({ announced: false })
  const { webseed } = await node.addresses()
  expect((await fetch(new URL(torrentAt, webseed))).status).toBe(404)
})
