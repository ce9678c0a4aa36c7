import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { sharedByFile, testDaemon } from '../support/daemon.ts'
import { writeFiles } from '../support/models.ts'
import { Node, pinned, refOf, refusal, weights } from './nodes.ts'

const served = sharedByFile(async (cleanUp) => {
  const node = await Node.start({}, cleanUp)
  return { node, share: await node.publish({ 'model-q8_0.gguf': weights(30_000, 61) }) }
})

test('a share has everything that the other machine needs', async () => {
  const { node, share } = await served()
  const { peer, webseed } = await node.addresses()
  expect(share).toMatchObject({
    ref: refOf(share.manifestDigest),
    announced: true,
    webseeds: [webseed],
    peers: [peer],
    trackers: [],
    name: `svc-sha256-${share.manifestDigest.slice(7, 19)}`,
    // the listener is on this machine only, and the note says so
    note: expect.stringContaining('webseed_addr')
  })
  expect(share.command).toBe(`svc import bt '${share.magnet}' --pin ${share.manifestDigest}`)
  expect(await node.client.share('svc:///me/model:q8_0')).toMatchObject({
    infohash: share.infohash,
    ref: 'svc:///me/model:q8_0'
  })
  const other = await Node.start()
  expect(await other.importBt({ magnet: share.magnet, manifestDigest: share.manifestDigest })).toMatchObject({
    state: 'done'
  })
  // the record of the publisher and of the one who fetched are the same: both follow from the manifest (spec doc.15, doc.17)
  const [own, theirs] = [node, other].map((each) => each.running.context.artifacts.read(share.manifestDigest as never))
  expect((await own!)!.record).toBe((await theirs!)!.record)
  expect((await other.share(share.manifestDigest)).infohash).toBe(share.infohash)
})

test('a share is refused for an absent model, and without a swarm client', async () => {
  const { node } = await served()
  expect(await refusal(node.client.share('svc:///no/body:q8_0'))).toMatchObject({ code: 'E_UNKNOWN_REF', status: 404 })
  expect(await refusal(node.share(`sha256:${'00'.repeat(32)}`))).toMatchObject({ code: 'E_NOT_FOUND', status: 404 })
  const off = await testDaemon()
  await off.import([writeFiles(join(off.folder, 'files'), { 'model-q8_0.gguf': weights(1_000, 63) })])
  const { status, body } = await off.get(`/v1/share?ref=${encodeURIComponent('svc:///me/model:q8_0')}`)
  expect({ status, code: body.error.code }).toEqual({ status: 501, code: 'E_NOT_IMPLEMENTED' })
  expect((await off.get('/v1/status')).body.swarm).toMatchObject({ enabled: false, seeding: 0, torrents: [] })
})

test('the status lists torrents, peers and rates, runtime.json (0600) the addresses', async () => {
  const { node, share } = await served()
  const other = await Node.start()
  expect(await other.importBt(pinned(share))).toMatchObject({ state: 'done' })
  const { swarm } = await node.client.status()
  expect(swarm).toMatchObject({ enabled: true, seed: true, seeding: 1, heldBack: [] })
  expect(swarm.torrents).toEqual([
    {
      infohash: share.infohash,
      name: share.name,
      manifestDigest: share.manifestDigest,
      state: 'seeding',
      sizeBytes: expect.any(Number),
      peers: expect.any(Number),
      downBytesPerSecond: 0,
      upBytesPerSecond: expect.any(Number),
      uploadedBytes: expect.any(Number)
    }
  ])
  const path = join(node.folder, 'runtime.json')
  expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({
    pid: process.pid,
    peer: swarm.peerAddress,
    webseed: swarm.webseedAddress
  })
  expect(statSync(path).mode & 0o777).toBe(0o600)
})

test('without a webseed listener a share has peers only', async () => {
  const node = await Node.start({ swarm: { webseed_addr: '' } })
  const share = await node.publish({ 'model-q8_0.gguf': weights(30_000, 62) })
  expect(share.webseeds).toEqual([])
  expect((await node.client.status()).swarm.webseedAddress).toBeUndefined()
})
