import { expect, test } from 'vitest'
import { eventually, MIB, Node, pinned, weights } from './nodes.ts'

test('a fetch counts what arrives of a piece that a slow peer takes long for, and in the end what is kept; peers are listed meanwhile', async () => {
  const seeder = await Node.start({ swarm: { upload_limit: 200_000 } })
  const share = await seeder.publish({ 'model-q8_0.gguf': weights(3 * MIB, 81) })
  const node = await Node.start()
  // the piece layers alone come from the webseed, whose budget is that of the peers
  const { id } = await node.client.importBt(pinned(share))
  const look = () => node.client.job(id)
  const seen = new Set<number>()
  await eventually(async () => {
    const { bytesDone = 0 } = await look()
    if (bytesDone % MIB > 32_768) seen.add(bytesDone)
    return seen.size > 3 ? true : undefined
  })
  // both sides tell their peer
  const [theirs, ours] = [await seeder.client.peers(), await node.client.peers()]
  expect(ours).toEqual({
    peers: [
      {
        infohash: share.infohash,
        manifestDigest: share.manifestDigest,
        address: (await seeder.addresses()).peer,
        client: expect.any(String),
        source: 'named',
        have: 1,
        downBytesPerSecond: expect.any(Number),
        upBytesPerSecond: 0
      }
    ],
    more: 0
  })
  expect(theirs.peers[0]).toMatchObject({ source: 'incoming', have: expect.any(Number), downBytesPerSecond: 0 })
  expect(theirs.peers[0]!.have).toBeLessThan(1)
  await node.client.cancelJob(id)
  const ended = await eventually(async () => {
    const job = await look()
    return job.state === 'failed' ? job : undefined
  })
  expect(ended.bytesDone! % MIB).toBeLessThan(32_768)
})
