import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { haveLibtorrent, Libtorrent } from '@svc/testkit/libtorrent'
import { describe, expect, onTestFinished, test } from 'vitest'
import { sharedByFile, temporaryFolder } from '../support/daemon.ts'
import { contentOf } from './fake-webseed.ts'
import { Node } from './nodes.ts'

async function lt(settings?: Record<string, unknown>): Promise<Libtorrent> {
  const session = await Libtorrent.start(settings)
  onTestFinished(() => session.stop())
  return session
}

/** A seeding daemon, what it serves, and its torrent file. */
const seeding = sharedByFile(async (cleanUp) => {
  const node = await Node.start({}, cleanUp)
  const share = await node.publish()
  const content = await contentOf(share)
  const answer = await fetch(`${share.webseeds[0]}bt/${share.infohash.slice(9)}.torrent`)
  const torrent = join(node.folder, 'served.torrent')
  writeFileSync(torrent, Buffer.from(await answer.arrayBuffer()))
  const files = new Map(
    [...content].flatMap(([path, bytes]) => (path.startsWith('/bt/') ? [] : [[path.slice(1), bytes] as const]))
  )
  return { node, share, content, torrent, files }
})

function expectFiles(files: ReadonlyMap<string, Buffer>, folder: string): void {
  for (const [path, bytes] of files) expect(readFileSync(join(folder, path)).equals(bytes), path).toBe(true)
}

describe.skipIf(!haveLibtorrent)('libtorrent', () => {
  test('computes the same infohash and piece layers from the same files, and takes the served torrent', async () => {
    const { share, torrent, files } = await seeding()
    const folder = temporaryFolder()
    for (const [path, bytes] of files) {
      mkdirSync(dirname(join(folder, path)), { recursive: true })
      writeFileSync(join(folder, path), bytes)
    }
    const session = await lt()
    const served = await session.inspect(torrent)
    const made = await session.make(join(folder, share.name), served.pieceLength, join(folder, 'made.torrent'))
    expect(`btmh:1220${made.infohash}`).toBe(share.infohash)
    expect(served.infohash).toBe(made.infohash)
    expect(served.layers).toEqual(made.layers)
    expect(Object.keys(made.layers)).toHaveLength(1)
    expect(served.webseeds).toEqual(share.webseeds)
    expect(new Set(served.files.filter((path) => !path.includes('/.pad/')))).toEqual(new Set(files.keys()))
  })

  test('downloads from the daemon by .torrent and peer protocol', async () => {
    const { share, torrent, files } = await seeding()
    const folder = temporaryFolder()
    const session = await lt()
    await session.add({ torrent, save: folder, peers: share.peers, webseeds: [] })
    await session.until(({ seeding }) => seeding)
    expectFiles(files, folder)
  })

  test('downloads from the daemon by the magnet alone', async () => {
    const { share, files } = await seeding()
    const folder = temporaryFolder()
    const session = await lt()
    // the magnet names the peer; without webseeds metadata and hashes can come from nobody else
    await session.add({ magnet: share.magnet.replace(/&ws=[^&]*/g, ''), save: folder })
    await session.until(({ seeding }) => seeding)
    expectFiles(files, folder)
  })

  test('downloads from the webseed listener alone, which the served torrent names', async () => {
    const { torrent, files } = await seeding()
    const folder = temporaryFolder()
    const session = await lt()
    await session.add({ torrent, save: folder })
    await session.until(({ seeding, peers }) => {
      expect(peers).toBeLessThanOrEqual(1)
      return seeding
    })
    expectFiles(files, folder)
  })

  test('downloads with its defaults: uTP and encryption first', async () => {
    const { share, torrent, files } = await seeding()
    const folder = temporaryFolder()
    const session = await lt({
      enable_outgoing_utp: true,
      enable_incoming_utp: true,
      in_enc_policy: 1,
      out_enc_policy: 1
    })
    await session.add({ torrent, save: folder, peers: share.peers, webseeds: [] })
    await session.until(({ seeding }) => seeding)
    expectFiles(files, folder)
  })

  test('files have the names and the digests of the manifest', async () => {
    const { share, files } = await seeding()
    const manifest = JSON.parse(
      files.get(`${share.name}/manifest/sha256-${share.manifestDigest.slice(7)}`)!.toString()
    ) as { files: { name: string; digest: string }[] }
    for (const { name, digest } of manifest.files) {
      expect(
        `sha256:${createHash('sha256')
          .update(files.get(`${share.name}/${name}`)!)
          .digest('hex')}`
      ).toBe(digest)
    }
    expect(manifest.files.map(({ name }) => name)).toContain('größe a+b%20c/adapter.tar')
  })
})
