// A daemon and a program with a library of its own are peers like any other.
import { join } from 'node:path'
import { openLibrary } from '@svc/library'
import { shareModels } from '@svc/sharing'
import { expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from '../support/daemon.ts'
import { Node } from './nodes.ts'

test('a library fetches what a daemon shares, and a daemon what the library shares on', async () => {
  const daemon = await Node.start()
  const shared = await daemon.publish()
  const library = await openLibrary({ root: join(temporaryFolder(), 'store') })
  onTestFinished(() => library.close())
  const sharing = await shareModels(library, { peer: { host: '127.0.0.1' }, dht: false })
  onTestFinished(() => sharing.close())
  const { manifests, quants } = await sharing.fetch(shared, 'my/model')
  expect(manifests).toEqual([shared.manifestDigest])
  await daemon.stop()

  const { companions, ...again } = await sharing.share(`svc:///my/model:${quants![0]}`)
  expect(again).toMatchObject({ manifestDigest: shared.manifestDigest, infohash: shared.infohash, announced: true })
  expect(companions).toEqual(shared.companions)
  const other = await Node.start()
  const { magnet, manifestDigest } = again
  const job = await other.importBt({
    magnet,
    manifestDigest,
    manifestFromPeers: true,
    ...(companions && { companions })
  })
  expect(job).toMatchObject({ state: 'done', result: { manifests: [shared.manifestDigest] } })
  await other.expectWhole(shared.manifestDigest)
})
