// The manifest of a pinned import from peers alone (spec add.9).
import { expect, test } from 'vitest'
import { sharedByFile } from '../support/daemon.ts'
import { MODEL, Node, pinned, refusal, weights } from './nodes.ts'

const served = sharedByFile(async (cleanUp) => {
  const node = await Node.start({ swarm: { webseed_addr: '' } }, cleanUp)
  return { node, share: await node.publish(MODEL) }
})

test('a share without a webseed is enough if peers may send the manifest', async () => {
  const { share } = await served()
  const other = await Node.start()
  expect(
    await refusal(other.client.importBt({ magnet: share.magnet, manifestDigest: share.manifestDigest }))
  ).toMatchObject({ code: 'E_BAD_REQUEST', message: expect.stringContaining('manifestFromPeers') })
  const body = {
    magnet: share.magnet,
    manifestDigest: share.manifestDigest,
    manifestFromPeers: true,
    as: 'their/model'
  }
  const [job, twin] = await Promise.all([other.importBt(body), other.importBt(body)])
  for (const each of [job, twin])
    expect(each).toMatchObject({ state: 'done', result: { manifests: [share.manifestDigest] } })
  expect(job.result).not.toHaveProperty('warnings')
  await other.expectWhole(share.manifestDigest)
  expect((await other.client.resolve('svc:///their/model:q8_0')).manifestDigest).toBe(share.manifestDigest)
  // a private import asks nobody but the peers that were named, and gives nothing
  const quiet = await Node.start()
  expect(await quiet.importBt({ ...body, private: true })).toMatchObject({ state: 'done' })
  expect((await quiet.client.status()).swarm).toMatchObject({ seeding: 0 })
})

test('a useless webseed is skipped', async () => {
  const { share } = await served()
  const other = await Node.start()
  const job = await other.importBt({ ...pinned(share, { webseeds: ['http://127.0.0.1:9/'] }), manifestFromPeers: true })
  expect(job).toMatchObject({ state: 'done' })
  expect(job.result).not.toHaveProperty('warnings')
})

test('a pin that the torrent does not contain is refused, and nothing is kept', async () => {
  const { share } = await served()
  const other = await Node.start()
  const pin = `sha256:${'ab'.repeat(32)}`
  const before = other.blobs()
  const job = await other.importBt({ ...pinned(share, { manifestDigest: pin }), manifestFromPeers: true })
  expect(job).toMatchObject({ state: 'failed', error: { code: 'E_NOT_IMPORTABLE' } })
  expect(other.blobs()).toEqual(before)
  // the engine let go of it: the right pin goes through
  expect(await other.importBt({ ...pinned(share), manifestFromPeers: true })).toMatchObject({ state: 'done' })
})

test('without peers the job says so, and can be cancelled while it searches', async () => {
  const { share } = await served()
  const other = await Node.start({ swarm: { fill_timeout: 1 } })
  const nobody = { ...pinned(share, { peers: ['127.0.0.1:9'] }), manifestFromPeers: true }
  expect(await other.importBt(nobody)).toMatchObject({ state: 'failed', error: { code: 'E_SOURCE_UNAVAILABLE' } })
  const patient = await Node.start()
  const job = await patient.client.importBt(nobody)
  expect(await patient.client.cancelJob(job.id)).toMatchObject({ state: 'failed', error: { code: 'E_ABORTED' } })
})

test('POST /v1/share announces a model that is not announced yet', async () => {
  const node = await Node.start({ swarm: { seed_on_import: false } })
  const digest = await node.importFiles({ 'model-q8_0.gguf': weights(30_000, 71) })
  expect(await node.share(digest)).toMatchObject({ announced: false, note: expect.any(String) })
  expect(await node.client.joinShare('me/model:q8_0')).toMatchObject({ announced: true, manifestDigest: digest })
  expect((await node.client.status()).swarm.seeding).toBe(1)
  await node.client.setPrivate({ ref: 'me/model:q8_0', private: true })
  expect(await node.client.joinShare('me/model:q8_0')).toMatchObject({
    announced: false,
    note: expect.stringContaining('private')
  })
  expect((await node.client.status()).swarm.seeding).toBe(0)
})
