import { closeSync, openSync, readdirSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { type BlobInfo, type DiskBlobStore, openDiskStore } from '@svc/cas'
import { expect, it, onTestFinished } from 'vitest'
import { temporaryFolder } from '../../../daemon/test/support/daemon.ts'
import { seededBytes } from '../../../daemon/test/support/models.ts'
import { copyBlobs } from '../../src/copying/copy-blobs.ts'

const SIZE_BYTES = 12 << 20
const RESUMABLE = { resumableBytes: 1 << 20 }

async function store(root: string): Promise<DiskBlobStore> {
  const opened = await openDiskStore({ root })
  onTestFinished(() => opened.close())
  return opened
}

async function put(into: DiskBlobStore, sizeBytes: number, seed: number): Promise<BlobInfo> {
  const { digest } = await into.ingest(
    (async function* () {
      yield seededBytes(sizeBytes, seed)
    })()
  )
  return { digest, sizeBytes }
}

/** Copies until half of the bytes are there, then stops. */
async function interrupted(from: DiskBlobStore, to: DiskBlobStore, blobs: readonly BlobInfo[]): Promise<void> {
  const stop = new AbortController()
  const copying = copyBlobs(from, to, blobs, {
    ...RESUMABLE,
    signal: stop.signal,
    onProgress: ({ bytesDone, bytesTotal }) => void (bytesDone * 2 >= bytesTotal && stop.abort(new Error('stopped')))
  })
  await expect(copying).rejects.toThrow()
}

async function listed(of: DiskBlobStore): Promise<string[]> {
  const digests: string[] = []
  for await (const { digest } of of.list()) digests.push(digest)
  return digests
}

it('resumes within a large blob, also after a restart', async () => {
  const folder = temporaryFolder()
  const from = await store(join(folder, 'from'))
  const large = await put(from, SIZE_BYTES, 1)
  const first = await openDiskStore({ root: join(folder, 'to') })
  await interrupted(from, first, [large])
  expect(await listed(first)).toEqual([])
  await first.close()

  const to = await store(join(folder, 'to'))
  const seen: number[] = []
  const corrupt = await copyBlobs(from, to, [large, await put(from, 1000, 2)], {
    ...RESUMABLE,
    signal: new AbortController().signal,
    onProgress: ({ bytesDone }) => void seen.push(bytesDone)
  })
  expect(corrupt).toEqual([])
  // it begins where the first try ended
  expect(Math.max(...seen.slice(0, 3))).toBeGreaterThanOrEqual(SIZE_BYTES / 2)
  expect(await listed(to)).toEqual(await listed(from))
  expect(readdirSync(join(folder, 'to/incoming'))).toEqual([])
})

it('reads a blob again when the bytes of an earlier attempt are damaged', async () => {
  const folder = temporaryFolder()
  const from = await store(join(folder, 'from'))
  const large = await put(from, SIZE_BYTES, 3)
  const first = await openDiskStore({ root: join(folder, 'to') })
  await interrupted(from, first, [large])
  await first.close()
  const incoming = join(folder, 'to/incoming')
  const part = join(incoming, readdirSync(incoming).find((name) => name.endsWith('.part'))!)
  const fd = openSync(part, 'r+')
  writeSync(fd, Buffer.from('x'), 0, 1, 4096)
  closeSync(fd)

  const to = await store(join(folder, 'to'))
  expect(
    await copyBlobs(from, to, [large], { ...RESUMABLE, signal: new AbortController().signal, onProgress() {} })
  ).toEqual([])
  expect(await to.verify(large.digest)).toMatchObject({ status: 'ok', sizeBytes: SIZE_BYTES })
})

it('names corrupt blobs, and copies the rest', async () => {
  const folder = temporaryFolder()
  const from = await store(join(folder, 'from'))
  const [bad, good] = [await put(from, 2 << 20, 4), await put(from, 2 << 20, 5)]
  const fd = openSync(from.blobPath(bad.digest), 'r+')
  writeSync(fd, Buffer.from('x'), 0, 1, statSync(from.blobPath(bad.digest)).size >> 1)
  closeSync(fd)
  const to = await store(join(folder, 'to'))
  const copied = await copyBlobs(from, to, [bad, good], {
    ...RESUMABLE,
    signal: new AbortController().signal,
    onProgress() {}
  })
  expect(copied).toEqual([bad.digest])
  expect(await listed(to)).toEqual([good.digest])
})
