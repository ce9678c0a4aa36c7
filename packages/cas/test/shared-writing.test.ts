import { createHash } from 'node:crypto'
import { closeSync, openSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type DiskBlobStore, openDiskStore } from '../src/index.ts'
import type { SlowWriteOptions } from './slow-write-port.ts'
import { openDescriptors, temporaryFolder } from './temporary-root.ts'

const SIZE_BYTES = 24 * (1 << 20) + 4321
const bytes = Buffer.alloc(SIZE_BYTES)
for (let at = 0; at < SIZE_BYTES; at += 997) bytes[at] = (at >> 3) & 255
const digest = `sha256:${createHash('sha256').update(bytes).digest('hex')}`

let folder: Awaited<ReturnType<typeof temporaryFolder>>
let store: DiskBlobStore | undefined
let source: number

beforeEach(async () => {
  folder = await temporaryFolder()
  writeFileSync(join(folder.path, 'model'), bytes)
  source = openSync(join(folder.path, 'model'), 'r')
})
afterEach(async () => {
  closeSync(source)
  await store?.close()
  await folder.dispose()
})

async function storeWith(options: Omit<SlowWriteOptions, 'log'>): Promise<{ store: DiskBlobStore; log: string }> {
  const log = join(folder.path, 'log')
  writeFileSync(log, '')
  const module = new URL('./slow-write-port.ts', import.meta.url).href
  store = await openDiskStore({
    root: join(folder.path, 'root'),
    hashThreads: 2,
    filePort: { module, options: { ...options, log } satisfies SlowWriteOptions }
  })
  return { store, log }
}

test('of a large file, each byte is written once, by whichever of the two threads has the time', async () => {
  const { store, log } = await storeWith({ helped: new SharedArrayBuffer(4) })
  const result = await store.ingest({ fd: source })
  expect(result).toMatchObject({ digest, sizeBytes: SIZE_BYTES })
  expect((await store.verify(result.digest)).status).toBe('ok')
  const writes = readFileSync(log, 'utf8')
    .trim()
    .split('\n')
    .map((line) => line.split(' ').map(Number) as [thread: number, position: number, length: number])
    .sort(([, a], [, b]) => a - b)
  expect(new Set(writes.map(([thread]) => thread)).size).toBe(2)
  let end = 0
  for (const [, position, length] of writes) {
    expect(position).toBe(end)
    end += length
  }
  expect(end).toBe(SIZE_BYTES)
})

test('the thread that helps finds the disk full: nothing is left', async () => {
  const { store } = await storeWith({ helped: new SharedArrayBuffer(4), helperFails: true })
  const descriptors = await openDescriptors()
  await expect(store.ingest({ fd: source })).rejects.toMatchObject({
    code: 'E_NO_SPACE',
    details: { operation: 'write part' }
  })
  expect(readdirSync(join(folder.path, 'root/incoming'))).toEqual([])
  expect(await openDescriptors()).toBe(descriptors)
  expect(await store.stat(digest as never)).toBeUndefined()
})

test('the thread that helps gets no descriptor: the other one writes everything', async () => {
  const { store, log } = await storeWith({ helperCannotOpen: true })
  const result = await store.ingest({ fd: source })
  expect(result).toMatchObject({ digest, sizeBytes: SIZE_BYTES })
  expect((await store.verify(result.digest)).status).toBe('ok')
  expect(
    new Set(
      readFileSync(log, 'utf8')
        .trim()
        .split('\n')
        .map((line) => line.split(' ')[0])
    ).size
  ).toBe(1)
})

test('given up while both write: nothing is left', async () => {
  const { store, log } = await storeWith({ helped: new SharedArrayBuffer(4) })
  const descriptors = await openDescriptors()
  const stop = new AbortController()
  const onProgress = (): void => stop.abort()
  await expect(store.ingest({ fd: source }, { signal: stop.signal, onProgress })).rejects.toMatchObject({
    code: 'E_ABORTED'
  })
  expect(readFileSync(log, 'utf8')).not.toBe('')
  expect(readdirSync(join(folder.path, 'root/incoming'))).toEqual([])
  expect(await openDescriptors()).toBe(descriptors)
})

test('given up when the thread that reads is done, unknown to whoever gives up: the reason is the same', async () => {
  const { store } = await storeWith({})
  const descriptors = await openDescriptors()
  const stop = new AbortController()
  const onProgress = (): void => {
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
