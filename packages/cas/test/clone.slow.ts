import { spawnSync } from 'node:child_process'
import {
  closeSync,
  fstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
  writeSync
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type DiskBlobStore, openDiskStore } from '@svc/cas'
import { blockAttachment, blockHashes, codeOf, digestOf, seededBytes } from '@svc/cas-testsuite'
import { systemClock } from '@svc/internal-clock'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { UnchangedSource } from '../src/clone.ts'

const run = (program: string, ...args: string[]): boolean => spawnSync(program, args, { stdio: 'ignore' }).status === 0

/** A file system that shares blocks, in a file; needs root. */
const disk = mkdtempSync(join(tmpdir(), 'svc-cas-xfs-'))
const mount = join(disk, 'mount')
mkdirSync(mount)
const isMounted =
  run('truncate', '-s', '400M', join(disk, 'image')) &&
  run('mkfs.xfs', '-q', '-m', 'reflink=1', join(disk, 'image')) &&
  run('mount', '-o', 'loop', join(disk, 'image'), mount)
afterAll(() => {
  if (isMounted) run('umount', mount)
  rmSync(disk, { recursive: true, force: true })
})

describe.skipIf(!isMounted)('on a file system that shares blocks (XFS in a file, which needs root)', () => {
  const bytes = seededBytes(40_000_000)
  const source = join(mount, 'source')
  let store: DiskBlobStore
  let fd: number
  beforeEach(async () => {
    writeFileSync(source, bytes, { mode: 0o644 })
    // by this clock the source has been left alone for long enough
    const clock = { ...systemClock, now: () => systemClock.now() + 3_000 }
    store = await openDiskStore({ root: join(mount, 'store'), hashThreads: 2, clock })
    fd = openSync(source, 'r')
  })
  afterEach(async () => {
    closeSync(fd)
    await store.close()
    rmSync(join(mount, 'store'), { recursive: true })
  })
  const usedBytes = (): number => {
    run('sync', '-f', mount)
    const { blocks, bfree, bsize } = statfsSync(mount)
    return (blocks - bfree) * bsize
  }

  test('a file is ingested without being written again, and is a blob like any other', async () => {
    const before = usedBytes()
    const { digest, attachments, existed } = await store.ingest({ fd }, { attachments: [blockAttachment] })
    expect([digest, existed]).toEqual([digestOf(bytes), false])
    expect(Buffer.compare(attachments.blocks!, blockHashes(bytes))).toBe(0)
    expect(usedBytes() - before).toBeLessThan(bytes.length / 4)
    expect(statSync(store.blobPath(digest)).mode & 0o777).toBe(0o444)
    // the file is its owner's: what is written to it later is not in the blob.
    writeFileSync(source, 'something else')
    expect((await store.verify(digest)).status).toBe('ok')
  })

  test('a recently written source is read through its clone, an older one directly if it has no writer', async () => {
    const { mtimeMs } = fstatSync(fd)
    expect(UnchangedSource.before(fd, Math.floor(mtimeMs) + 1_900)).toBe(undefined)
    const snapshot = UnchangedSource.before(fd, Math.ceil(mtimeMs) + 2_001)!
    expect(snapshot.holds()).toBe(true)
    const { digest, attachments } = await store.ingest({ fd }, { attachments: [blockAttachment] })
    expect(digest).toBe(digestOf(bytes))
    expect(Buffer.compare(attachments.blocks!, blockHashes(bytes))).toBe(0)
    await store.remove(digest)
    expect(snapshot.holds()).toBe(true)

    // written to while it is read: the blob is what was cloned, and that is what its digest says
    const writer = openSync(source, 'r+')
    try {
      let isWritten = false
      const onProgress = (): void => {
        if (!isWritten) writeSync(writer, Uint8Array.of(bytes.at(-1)! ^ 1), 0, 1, bytes.length - 1)
        isWritten = true
      }
      expect((await store.ingest({ fd }, { onProgress })).digest).toBe(digestOf(bytes))
      expect(isWritten).toBe(true)
    } finally {
      closeSync(writer)
    }
    expect((await store.verify(digest)).status).toBe('ok')
    expect(snapshot.holds()).toBe(false)
    expect(readdirSync(join(mount, 'store', 'incoming'))).toEqual([])
  })

  test('refusals and aborts leave nothing behind', async () => {
    const other = digestOf(Buffer.from('other'))
    expect(await codeOf(store.ingest({ fd }, { digest: other }))).toBe('E_DIGEST_MISMATCH')
    const stop = new AbortController()
    const aborted = store.ingest({ fd }, { signal: stop.signal, onProgress: () => stop.abort() })
    expect(await codeOf(aborted)).toBe('E_ABORTED')
    expect(readdirSync(join(mount, 'store', 'incoming'))).toEqual([])
    expect(await store.stat(digestOf(bytes))).toBe(undefined)
  })
})
