import { expect, test } from 'vitest'
import { testDaemon } from '../support/daemon.ts'
import { MODEL, writeFiles } from '../support/models.ts'

test('a pin is shown, survives another import, and can be removed', async () => {
  const daemon = await testDaemon()
  const folder = writeFiles(`${daemon.folder}/model`, MODEL)
  await daemon.import([folder])
  const members = async () => (await daemon.get('/v1/models')).body.namespaces[0].members
  const pin = (pinned: boolean) =>
    daemon.call('PUT', '/v1/pin', { body: { ref: 'svc:///me/model:q8_0', pinned } }).then(({ body }) => body)

  const pinned = await pin(true)
  expect(pinned).toEqual({ ref: 'svc:///me/model:q8_0', manifestDigest: pinned.manifestDigest, pinned: true })
  await daemon.import([folder])
  expect((await members()).map((each: { pinned?: boolean }) => each.pinned)).toEqual([undefined, true])
  await pin(false)
  expect((await members()).map((each: { pinned?: boolean }) => each.pinned)).toEqual([undefined, undefined])
})

test('a missing model cannot be pinned', async () => {
  const daemon = await testDaemon()
  const { status, body } = await daemon.call('PUT', '/v1/pin', { body: { ref: 'svc:///me/none:q8_0', pinned: true } })
  expect([status, body.error.code]).toEqual([404, 'E_UNKNOWN_REF'])
})
