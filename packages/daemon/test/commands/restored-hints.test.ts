// Addresses in a restored backup are nobody's word: none of them is dialled outside public networks.
import { unlinkSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { restored } from '../support/restored.ts'
import { contentOf, startWebseed } from '../swarm/fake-webseed.ts'
import { listeningTracker } from '../swarm/listening-tracker.ts'
import { modelAlone, Node, pinned, refOf, weights } from '../swarm/nodes.ts'

const WEIGHTS = 'model-q8_0.gguf'
const FILES = { [WEIGHTS]: weights(70_000, 97), 'config.json': '{"model_type":"llama"}' }

/** A peer that answers nothing, and counts who comes. */
async function listeningPeer(): Promise<{ readonly address: string; readonly connections: () => number }> {
  let connections = 0
  const server = createServer((socket) => {
    connections++
    socket.destroy()
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  onTestFinished(() => void server.close())
  return { address: `127.0.0.1:${(server.address() as AddressInfo).port}`, connections: () => connections }
}

test('the trackers, webseeds and peers of a restored record are not dialled on this machine; those that the owner types are', async () => {
  const seeder = await Node.start()
  const share = await seeder.publish(FILES)
  const webseed = await startWebseed(await contentOf(share))
  const [tracker, peer] = [await listeningTracker(), await listeningPeer()]
  const hints = { webseeds: [webseed.url], trackers: tracker.trackers, peers: [peer.address] }
  const typed = pinned(modelAlone(share), { ...hints, as: 'me/model' })
  const node = await Node.start({ swarm: { fill_timeout: 3 } })
  expect((await node.importBt(typed)).error).toBeUndefined()
  const { digest } = (await node.client.open(refOf(share.manifestDigest))).files.find(({ name }) => name === WEIGHTS)!
  const asked = () => ({
    webseed: webseed.requests.length,
    tracker: tracker.announces.length,
    peer: peer.connections()
  })

  const folder = await restored(node)
  // the owner's own store goes on as before
  unlinkSync(node.blobPath(digest!))
  expect(await node.ensure(share.manifestDigest)).toMatchObject({ state: 'done' })
  await node.stop()

  const before = asked()
  const back = await Node.start({ folder, swarm: { fill_timeout: 3 } })
  expect(await back.done(await back.client.evict({ ref: 'svc:///me/model:q8_0' }))).toMatchObject({ state: 'failed' })
  unlinkSync(back.blobPath(digest!))
  expect(await back.ensure(share.manifestDigest)).toMatchObject({
    state: 'failed',
    error: { code: 'E_SOURCE_UNAVAILABLE' }
  })
  expect(asked()).toEqual(before)
  // nor does it pass them on as the owner's
  expect(await back.share(share.manifestDigest)).toMatchObject({ trackers: [] })

  expect((await back.importBt(typed)).error).toBeUndefined()
  unlinkSync(back.blobPath(digest!))
  expect(await back.ensure(share.manifestDigest)).toMatchObject({ state: 'done' })
  const after = asked()
  expect(after.webseed).toBeGreaterThan(before.webseed)
  expect(after.tracker).toBeGreaterThan(before.tracker)
})
