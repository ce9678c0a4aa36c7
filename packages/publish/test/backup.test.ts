import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { digestFromHex, digestHex, type Sha256Digest } from '@svc/ref'
import { seededBytes } from '@svc/testkit/models'
import { expect, onTestFinished, test } from 'vitest'
import { type BackupProgress, backUp, openTarget, type Target } from '../src/index.ts'
import { temporaryFolder } from './fixture.ts'

const SIZE_BYTES = 100_000

/** A target whose reads wait. */
const readingAfter = (target: Target, event: Promise<unknown>): Target =>
  new Proxy(target, {
    get: (of, name) => {
      const value: unknown = Reflect.get(of, name, of)
      if (typeof value !== 'function') return value
      return async (...given: unknown[]) => {
        if (name === 'readRange') await event
        return value.apply(of, given) as unknown
      }
    }
  })

test('progress counts a blob that is already there, also while another one is sent', async () => {
  const store = temporaryFolder()
  const blobPath = (digest: Sha256Digest): string => join(store, digestHex(digest))
  const digests = [1, 2].map((seed) => {
    const bytes = seededBytes(SIZE_BYTES, seed)
    const digest = digestFromHex(createHash('sha256').update(bytes).digest('hex'))
    writeFileSync(blobPath(digest), bytes)
    return digest
  })
  const snapshotOf = (blobs: readonly Sha256Digest[]): string => {
    const path = join(store, `snapshot-${blobs.length}`)
    const head = {
      svcSnapshot: 1,
      storeId: '0b9d6b1e-0000-4000-8000-000000000001',
      createdAt: '2026-01-01T00:00:00.000Z'
    }
    const lines = [head, ...blobs.map((blob) => ({ blob, sizeBytes: SIZE_BYTES })), { end: blobs.length }]
    writeFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
    return path
  }
  const target = await openTarget({ kind: 'folder', path: temporaryFolder() })
  onTestFinished(() => target.close())
  await backUp(target, { snapshotPath: snapshotOf(digests.slice(0, 1)), blobPath })
  const { promise: sent, resolve } = Promise.withResolvers<void>()
  const told: BackupProgress[] = []
  const onProgress = (progress: BackupProgress): void => {
    told.push(progress)
    if (progress.filesDone === 1) resolve()
  }
  const options = { snapshotPath: snapshotOf(digests), blobPath, verify: true, onProgress }
  expect(await backUp(readingAfter(target, sent), options)).toMatchObject({ sentBlobs: 1, sentBytes: SIZE_BYTES })
  const total = 2 * SIZE_BYTES
  expect(told.at(-1)).toEqual({ filesDone: 2, filesTotal: 2, bytesDone: total, bytesTotal: total })
})
