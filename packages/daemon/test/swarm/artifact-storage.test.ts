import { unlinkSync } from 'node:fs'
import { setImmediate as turn } from 'node:timers/promises'
import { BLOCK_BYTES, HASH_BYTES, type LayoutFile, TorrentLayout } from '@svc/metainfo'
import { parseDigest } from '@svc/ref'
import { describe, expect, onTestFinished, test } from 'vitest'
import { OpenBlobs } from '../../../internal/state/src/open-blobs.ts'
import { AnswerReader } from '../../../sharing/src/answers.ts'
import { ArtifactStorage } from '../../../sharing/src/artifact-storage.ts'
import { ArtifactTorrents } from '../../../sharing/src/artifact-torrents.ts'
import { digestOf } from '../mirror/arriving.ts'
import { Node, weights } from './nodes.ts'

/** The storage of a fetch of `files`, all of which have these bytes. */
async function storageOf(bytes: Buffer, names: readonly string[]) {
  const node = await Node.start({ swarm: { seed_on_import: false } })
  const manifest = await node.importFiles(Object.fromEntries(names.map((name) => [name, bytes])))
  const { store, leafLayers, documents, holdings } = node.running.context
  const torrent = (await new ArtifactTorrents({ store, documents, leafLayers, answers: new AnswerReader() }).of(
    manifest
  ))!
  unlinkSync(node.blobPath(digestOf(bytes)))
  const blobs = new OpenBlobs(store)
  const { signal } = new AbortController()
  const storage = new ArtifactStorage({ store, leafLayers, arrivals: holdings.arrivals, blobs, torrent, signal })
  onTestFinished(async () => {
    await storage.close()
    await blobs.close()
  })
  const layout = new TorrentLayout(torrent)
  await storage.open(layout)
  return { storage, files: layout.files.filter(({ path }) => names.includes(path)) }
}

async function write(storage: ArtifactStorage, { index, lengthBytes }: LayoutFile, bytes: Uint8Array): Promise<void> {
  const writer = await storage.writer(index)
  await writer.write(0, bytes)
  await writer.markWritten(0, lengthBytes, new Uint8Array(Math.ceil(lengthBytes / BLOCK_BYTES) * HASH_BYTES))
}

describe('what peers read of a file', () => {
  test('is there at every moment of its commit', async () => {
    const bytes = weights(3 << 20, 91)
    const { storage, files } = await storageOf(bytes, ['model-q8_0.gguf'])
    const [file] = files as [LayoutFile]
    await write(storage, file, bytes)
    let over = false
    const complete = storage.fileComplete(file.index).finally(() => {
      over = true
    })
    const reads: Promise<number>[] = []
    for (; !over; await turn()) reads.push(storage.read(file.index, 100, new Uint8Array(10)))
    reads.push(storage.read(file.index, 100, new Uint8Array(10)))
    expect(await complete).toBe('ok')
    expect(new Set(await Promise.all(reads))).toEqual(new Set([10]))
    expect(reads.length).toBeGreaterThan(10)
  })

  test('is there for the second of two equal files, whichever is complete first', async () => {
    const bytes = weights(70_000, 92)
    const digest = parseDigest(digestOf(bytes))
    const { storage, files } = await storageOf(bytes, ['model-00001-of-00002.gguf', 'model-00002-of-00002.gguf'])
    const first = files.find(({ index }) => index === storage.fetching(digest))!
    const twin = files.find((file) => file !== first)!
    for (const file of [twin, first]) {
      await write(storage, file, bytes)
      expect(await storage.fileComplete(file.index)).toBe('ok')
      const target = new Uint8Array(70_000)
      expect(await storage.read(twin.index, 0, target)).toBe(70_000)
      expect(digestOf(target)).toBe(digest)
    }
    expect(storage.fetching(digest)).toBeUndefined()
    expect(await storage.state(twin)).toEqual({ kind: 'complete' })
  })
})
