import { createHash } from 'node:crypto'
import { closeSync, openSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type DiskBlobStore, openDiskStore } from '@svc/cas'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openDescriptors, temporaryFolder } from './temporary-root.ts'

const SIZE_BYTES = 24 * (1 << 20) + 4321
const bytes = Buffer.alloc(SIZE_BYTES)
for (let at = 0; at < SIZE_BYTES; at += 997) bytes[at] = (at >> 3) & 255
const digest = `sha256:${createHash('sha256').update(bytes).digest('hex')}`

let folder: Awaited<ReturnType<typeof temporaryFolder>>
let store: DiskBlobStore
let source: number

beforeEach(async () => {
  folder = await temporaryFolder()
  writeFileSync(join(folder.path, 'model'), bytes)
  source = openSync(join(folder.path, 'model'), 'r')
  store = await openDiskStore({ root: join(folder.path, 'root'), hashThreads: 2 })
})
afterEach(async () => {
  closeSync(source)
  await store.close()
  await folder.dispose()
})

test('a large file is read by one thread and written by another', async () => {
  const result = await store.ingest({ fd: source })
  expect(result).toMatchObject({ digest, sizeBytes: SIZE_BYTES })
  expect((await store.verify(result.digest)).status).toBe('ok')
})

test('an abort while both threads work leaves nothing', async () => {
  const descriptors = await openDescriptors()
  const stop = new AbortController()
  const onProgress = (): void => stop.abort()
  await expect(store.ingest({ fd: source }, { signal: stop.signal, onProgress })).rejects.toMatchObject({
    code: 'E_ABORTED'
  })
  expect(readdirSync(join(folder.path, 'root/incoming'))).toEqual([])
  expect(await openDescriptors()).toBe(descriptors)
})

test('an abort that comes after the reading thread is done has the same result', async () => {
  const descriptors = await openDescriptors()
  const stop = new AbortController()
  const onProgress = (): void => {
    if (stop.signal.aborted) return
    // no answer of a thread is heard meanwhile
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500)
    stop.abort()
  }
  await expect(store.ingest({ fd: source }, { signal: stop.signal, onProgress })).rejects.toMatchObject({
    code: 'E_ABORTED'
  })
  expect(readdirSync(join(folder.path, 'root/incoming'))).toEqual([])
  expect(await openDescriptors()).toBe(descriptors)
})
