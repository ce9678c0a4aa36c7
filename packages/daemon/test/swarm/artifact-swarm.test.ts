import { unlinkSync } from 'node:fs'
import { createSwarm } from '@svc/swarm'
import { expect, onTestFinished, test } from 'vitest'
import { AnswerReader } from '../../../sharing/src/answers.ts'
import { ArtifactSwarm } from '../../../sharing/src/artifact-swarm.ts'
import { ArtifactTorrents } from '../../../sharing/src/artifact-torrents.ts'
import { createLog } from '../../src/log.ts'
import { digestOf } from '../mirror/arriving.ts'
import { Node, weights } from './nodes.ts'

test('a seed that joins late does not take the place of a fetch', async () => {
  const node = await Node.start({ swarm: { seed_on_import: false } })
  const bytes = weights(70_000, 84)
  const manifest = await node.importFiles({ 'model-q8_0.gguf': bytes })
  const { store, leafLayers, documents, holdings } = node.running.context
  const engine = await createSwarm({ peerAddress: { host: '127.0.0.1', port: 0 }, dht: false, lsd: false })
  onTestFinished(() => engine.close())
  const torrents = new ArtifactTorrents({ store, documents, leafLayers, answers: new AnswerReader() })
  const swarm = new ArtifactSwarm({
    store,
    leafLayers,
    holdings,
    swarm: engine,
    webseed: () => undefined,
    trackers: [],
    log: createLog('silent')
  })
  onTestFinished(() => swarm.close())
  const torrent = (await torrents.of(manifest))!
  const layers = await torrents.layersOf(torrent, undefined, new AbortController().signal)
  const how = { layers, hints: { trackers: [], webseeds: [], peers: [] }, upload: true }
  unlinkSync(node.blobPath(digestOf(bytes)))

  const fetching = await swarm.join(torrent, { ...how, seedOnly: false })
  expect(await swarm.join(torrent, { ...how, seedOnly: true })).toBe(fetching)
  expect(swarm.joined.get(manifest)).toBe(fetching)
  await swarm.leave(manifest)
  // both at once, in either order
  for (const order of [
    [true, false],
    [false, true]
  ]) {
    await Promise.all(order.map((seedOnly) => swarm.join(torrent, { ...how, seedOnly })))
    expect(swarm.joined.get(manifest)?.seeding).toBe(false)
  }
})
