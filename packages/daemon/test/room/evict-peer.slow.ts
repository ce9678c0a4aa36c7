// Peers that do not answer when an eviction asks them: it waits for them.
import { expect, test } from 'vitest'
import { MODEL, modelAlone, Node, pinned, refOf } from '../swarm/nodes.ts'

test('a peer that is gone is no copy, and the model stays in the swarm', async () => {
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

test('this daemon itself is no peer that has it', async () => {
  const node = await Node.start()
  const share = modelAlone(await node.publish(MODEL))
  expect(await node.importBt(pinned(share, { webseeds: [], manifestFromPeers: true }))).toMatchObject({ state: 'done' })
  const job = await node.done(await node.client.evict({ ref: refOf(share.manifestDigest) }))
  expect(job).toMatchObject({ state: 'failed', error: { code: 'E_KEPT' } })
  await node.expectWhole(share.manifestDigest)
  await node.announced(share.manifestDigest)
})
