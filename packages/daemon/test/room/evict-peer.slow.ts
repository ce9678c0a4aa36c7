// A peer is a copy where the import named it, it says that it has everything, and gives some of it (spec add.55).
import { PEER_MESSAGE, startTamperingPeer } from '@svc/testkit/tampering-peer'
import { expect, onTestFinished, test } from 'vitest'
import { MODEL, modelAlone, Node, pinned, refOf } from '../swarm/nodes.ts'

const BYTES = MODEL['model-q8_0.gguf']!.length

test('a model that a named peer proves to have is evicted, leaves the swarm, and is fetched back', async () => {
  const publisher = await Node.start()
  const share = modelAlone(await publisher.publish(MODEL))
  const node = await Node.start()
  expect(await node.importBt(pinned(share, { webseeds: [], manifestFromPeers: true }))).toMatchObject({ state: 'done' })
  const ref = refOf(share.manifestDigest)
  const job = await node.done(await node.client.evict({ ref }))
  expect(job).toMatchObject({ state: 'done', result: { blobs: 1, bytes: BYTES } })
  const { copies } = await node.client.why(ref)
  expect(copies).toMatchObject([{ kind: 'peer', where: share.peers[0] }])
  expect(await node.ensure(share.manifestDigest)).toMatchObject({ state: 'done' })
  await node.expectWhole(share.manifestDigest)
})

test('a peer that claims everything and sends other bytes does not count as a copy', async () => {
  const publisher = await Node.start()
  const share = modelAlone(await publisher.publish(MODEL))
  let isLying = false
  const liar = await startTamperingPeer(share.peers[0]!, (message, id) => {
    if (!isLying || id !== PEER_MESSAGE.piece) return undefined
    const other = Buffer.from(message)
    other[other.length - 1]! ^= 0xff
    return other
  })
  onTestFinished(() => liar.close())
  const node = await Node.start()
  expect(
    await node.importBt(pinned(share, { webseeds: [], manifestFromPeers: true, peers: [liar.address] }))
  ).toMatchObject({ state: 'done' })
  isLying = true
  const job = await node.done(await node.client.evict({ ref: refOf(share.manifestDigest) }))
  expect(job).toMatchObject({ state: 'failed', error: { code: 'E_KEPT' } })
  await node.expectWhole(share.manifestDigest)
})

// Peers that do not answer when an eviction asks them: it waits for them.
test('an absent peer does not count as a copy, and the model stays in the swarm', async () => {
  const publisher = await Node.start()
  const share = modelAlone(await publisher.publish(MODEL))
  const node = await Node.start()
  expect(await node.importBt(pinned(share, { webseeds: [], manifestFromPeers: true }))).toMatchObject({ state: 'done' })
  await publisher.stop()
  const ref = refOf(share.manifestDigest)
  const job = await node.done(await node.client.evict({ ref }))
  expect(job).toMatchObject({ state: 'failed', error: { code: 'E_KEPT' } })
  expect(job.error!.message).toContain(share.peers[0])
  await node.expectWhole(share.manifestDigest)
  await node.announced(share.manifestDigest)
})

test('this daemon itself does not count as a copy', async () => {
  const node = await Node.start()
  const share = modelAlone(await node.publish(MODEL))
  expect(await node.importBt(pinned(share, { webseeds: [], manifestFromPeers: true }))).toMatchObject({ state: 'done' })
  const job = await node.done(await node.client.evict({ ref: refOf(share.manifestDigest) }))
  expect(job).toMatchObject({ state: 'failed', error: { code: 'E_KEPT' } })
  await node.expectWhole(share.manifestDigest)
  await node.announced(share.manifestDigest)
})
