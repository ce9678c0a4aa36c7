// Who gives the manifest of a pinned import without a webseed, and who must not be believed (spec add.9).
import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { ImportBtBody, ShareResult } from '@svc/client/protocol'
import { haveLibtorrent, Libtorrent } from '@svc/testkit/libtorrent'
import { PEER_MESSAGE, startTamperingPeer } from '@svc/testkit/tampering-peer'
import { startTracker } from '@svc/testkit/tracker'
import { describe, expect, onTestFinished, test } from 'vitest'
import { sharedByFile, temporaryFolder } from '../support/daemon.ts'
import { contentOf } from './fake-webseed.ts'
import { eventually, MODEL, modelAlone, Node, pinned } from './nodes.ts'

/** Seeders without a webseed listener, so that nothing can come from there. */
const swarm = sharedByFile(async (cleanUp) => {
  const seeder = await Node.start({ swarm: { webseed_addr: '' } }, cleanUp)
  return { seeder, share: await seeder.publish() }
})

function fromPeers(share: ShareResult, more: Partial<ImportBtBody> = {}): ImportBtBody {
  const { webseeds: _, ...body } = pinned(share, more)
  return { ...body, manifestFromPeers: true }
}

describe('the manifest comes from', () => {
  test('a peer of the request, and the model as well', async () => {
    const { share } = await swarm()
    expect(share.webseeds).toEqual([])
    const node = await Node.start()
    const job = await node.importBt(fromPeers(share))
    expect(job.error).toBeUndefined()
    expect(job).toMatchObject({
      state: 'done',
      result: { manifests: [share.manifestDigest], infohash: share.infohash }
    })
    await node.expectWhole(share.manifestDigest)
    // it passes it on
    await node.announced(share.manifestDigest)
  })

  test('a peer that the magnet names', async () => {
    const { share } = await swarm()
    const node = await Node.start()
    const { magnet, manifestDigest } = share
    expect(await node.importBt({ magnet, manifestDigest, manifestFromPeers: true })).toMatchObject({ state: 'done' })
    await node.expectWhole(manifestDigest)
  })

  test('a peer that only a tracker of the request names', async () => {
    const tracker = await startTracker()
    onTestFinished(() => tracker.close())
    const seeder = await Node.start({ swarm: { webseed_addr: '', trackers: [tracker.http] } })
    const share = await seeder.publish()
    const node = await Node.start()
    const job = await node.importBt(fromPeers(share, { peers: [], trackers: [tracker.http] }))
    expect(job.error).toBeUndefined()
    await node.expectWhole(share.manifestDigest)
  })

  test.skipIf(!haveLibtorrent)('libtorrent, the only seed', async () => {
    const origin = await Node.start()
    const share = modelAlone(await origin.publish())
    const folder = temporaryFolder()
    for (const [path, bytes] of await contentOf(share)) {
      if (path.startsWith('/bt/')) continue
      mkdirSync(dirname(join(folder, path)), { recursive: true })
      writeFileSync(join(folder, path), bytes)
    }
    const torrent = join(folder, 'served.torrent')
    const answer = await fetch(`${share.webseeds[0]}bt/${share.infohash.slice(9)}.torrent`)
    writeFileSync(torrent, Buffer.from(await answer.arrayBuffer()))
    await origin.stop()
    const session = await Libtorrent.start()
    onTestFinished(() => session.stop())
    await session.add({ torrent, save: folder, webseeds: [] })
    await session.until(({ seeding }) => seeding)
    const node = await Node.start()
    const job = await node.importBt(fromPeers(share, { peers: [session.address] }))
    expect(job.error).toBeUndefined()
    await node.expectWhole(share.manifestDigest)
  })
})

describe('nothing but the pinned model', () => {
  test('a peer that sends wrong blocks beside an honest one is dropped and named', async () => {
    const { seeder, share } = await swarm()
    const { peer } = await seeder.addresses()
    const lying = await startTamperingPeer(peer, (message, id) => {
      if (id === PEER_MESSAGE.piece) message[message.length - 1]! ^= 1
      return undefined
    })
    onTestFinished(() => lying.close())
    // the honest one says nothing before the other has sent pieces of the manifest
    const slow = await startTamperingPeer(peer, undefined, lying.passedOn(2_000))
    onTestFinished(() => slow.close())
    const node = await Node.start()
    const job = await node.importBt(fromPeers(share, { peers: [lying.address, slow.address] }))
    expect(job.error).toBeUndefined()
    expect(job.result!.warnings).toEqual(expect.arrayContaining([expect.stringContaining(lying.address)]))
    await node.expectWhole(share.manifestDigest)
    await node.expectSound()
  })

  test('alone it is no source: E_SOURCE_UNAVAILABLE names it, and nothing is stored', async () => {
    const { seeder, share } = await swarm()
    const lying = await startTamperingPeer((await seeder.addresses()).peer, (message, id) => {
      if (id === PEER_MESSAGE.piece) message[message.length - 1]! ^= 1
      return undefined
    })
    onTestFinished(() => lying.close())
    const node = await Node.start({ swarm: { fill_timeout: 2 } })
    const job = await node.importBt(fromPeers(share, { peers: [lying.address] }))
    expect(job).toMatchObject({ state: 'failed', error: { code: 'E_SOURCE_UNAVAILABLE' } })
    expect(job.error!.message).toContain(lying.address)
    expect(node.blobs()).toEqual([])
  })

  test('refuses a pin that the torrent does not contain', async () => {
    const { share } = await swarm()
    const node = await Node.start()
    const manifestDigest = `sha256:${'ab'.repeat(32)}`
    const job = await node.importBt(fromPeers(share, { manifestDigest }))
    expect(job).toMatchObject({ state: 'failed', error: { code: 'E_NOT_IMPORTABLE' } })
    expect(node.blobs()).toEqual([])
    // also where the torrent is here already
    expect(await node.importBt(fromPeers(share))).toMatchObject({ state: 'done' })
    expect(await node.importBt(fromPeers(share, { manifestDigest }))).toMatchObject({
      state: 'failed',
      error: { code: 'E_NOT_IMPORTABLE' }
    })
    await node.announced(share.manifestDigest)
  })

  test.skipIf(!haveLibtorrent)(
    'refuses a torrent with another file of that name, or with more files than the manifest implies',
    async () => {
      const { share } = await swarm()
      const session = await Libtorrent.start()
      onTestFinished(() => session.stop())
      const node = await Node.start()
      const manifest = await contentOfManifest()
      for (const [what, pin, bytes] of [
        ['other bytes', `ab${'cd'.repeat(31)}`, Buffer.from('{"schemaVersion":1}')],
        ['another torrent than the manifest implies', share.manifestDigest.slice(7), manifest]
      ] as const) {
        const folder = temporaryFolder()
        const file = join(folder, 'made', 'manifest', `sha256-${pin}`)
        mkdirSync(dirname(file), { recursive: true })
        writeFileSync(file, bytes)
        writeFileSync(join(folder, 'made', 'weights.bin'), Buffer.alloc(3 << 20, 7))
        const torrent = join(folder, 'made.torrent')
        const { infohash } = await session.make(join(folder, 'made'), 1 << 20, torrent)
        await session.add({ torrent, save: folder })
        await session.until(({ seeding }) => seeding)
        const job = await node.importBt({
          infohash: `btmh:1220${infohash}`,
          manifestDigest: `sha256:${pin}`,
          peers: [session.address],
          manifestFromPeers: true
        })
        expect(job.error?.code, what).toBe('E_NOT_IMPORTABLE')
        expect(node.blobs()).toEqual([])
      }
    }
  )
})

async function contentOfManifest(): Promise<Buffer> {
  const { seeder, share } = await swarm()
  const bytes = Buffer.concat(await (await seeder.client.readBlob(share.manifestDigest)).body.toArray())
  expect(`sha256:${createHash('sha256').update(bytes).digest('hex')}`).toBe(share.manifestDigest)
  return bytes
}

describe('a peer gives nothing that is withheld', () => {
  test('a private model', async () => {
    const source = await Node.start({ swarm: { webseed_addr: '' } })
    const share = await source.publish()
    await source.client.setPrivate({ ref: 'me/model:q8_0', private: true })
    const node = await Node.start({ swarm: { fill_timeout: 2 } })
    expect(await node.importBt(fromPeers(share))).toMatchObject({
      state: 'failed',
      error: { code: 'E_SOURCE_UNAVAILABLE' }
    })
    expect(node.blobs()).toEqual([])
  })

  test('no peer at all', async () => {
    const { share } = await swarm()
    const node = await Node.start({ swarm: { fill_timeout: 8 } })
    const job = await node.importBt(fromPeers(share, { peers: [] }))
    expect(job).toMatchObject({ state: 'failed', error: { code: 'E_SOURCE_UNAVAILABLE' } })
    expect(await node.running.context.artifacts.read(share.manifestDigest as never)).toBeUndefined()
    expect((await node.client.status()).swarm.torrents).toEqual([])
    // nothing of it is in the way of the next try
    expect(await node.importBt(fromPeers(share))).toMatchObject({ state: 'done' })
  })
})

test('verified bytes survive a restart, and the rest needs the manifest no longer', async () => {
  const seeder = await Node.start({ swarm: { webseed_addr: '', upload_limit: 1 << 20 } })
  const share = await seeder.publish(MODEL)
  const node = await Node.start()
  const job = await node.client.importBt(fromPeers(share))
  await eventually(async () => (((await node.client.job(job.id)).bytesDone ?? 0) > 0 ? true : undefined))
  await node.stop()
  const again = await Node.start({ folder: node.folder })
  const { hints } = (await again.running.context.artifacts.read(share.manifestDigest as never))!
  expect(hints.peers).toEqual(share.peers)
  expect(await again.ensure(share.manifestDigest)).toMatchObject({ state: 'done' })
  await again.expectWhole(share.manifestDigest)
})
