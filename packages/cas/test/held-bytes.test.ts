import * as fs from 'node:fs'
import { join } from 'node:path'
import { type DiskBlobStore, openDiskStore, type PartialBlob } from '@svc/cas'
import { codeOf, digestOf, seededBytes } from '@svc/cas/contract'
import { randomFrom } from '@svc/testkit/mutate'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { temporaryFolder } from './temporary-root.ts'

const MIB = 1 << 20
const bytes = seededBytes(12 * MIB + 5)
let folder: Awaited<ReturnType<typeof temporaryFolder>>
let store: DiskBlobStore
beforeEach(async () => {
  folder = await temporaryFolder()
  store = await openDiskStore({ root: join(folder.path, 'store') })
})
afterEach(async () => {
  await store.close()
  await folder.dispose()
})

function shared(start: number, end: number): Uint8Array {
  const held = new Uint8Array(new SharedArrayBuffer(end - start))
  held.set(bytes.subarray(start, end))
  return held
}
const open = (key: string): Promise<PartialBlob> =>
  store.partial({ key, sizeBytes: bytes.length, digest: digestOf(bytes) })
const writeVia = (partial: PartialBlob, start: number, end: number, from: Uint8Array = bytes): void =>
  void fs.writeSync(partial.fd as number, from, start, end - start, start)

test('bytes in shared memory are hashed there, in whatever order they come', async () => {
  const partial = await open('k')
  const other = new Uint8Array(bytes.length)
  const held: (Promise<void> | undefined)[] = []
  for (const [start, end] of [
    [4 * MIB, 8 * MIB],
    [0, 4 * MIB],
    [8 * MIB, 12 * MIB]
  ] as const) {
    // what the file has instead shows where they were read
    writeVia(partial, start, end, other)
    held.push(partial.markWritten(start, end, undefined, shared(start, end)))
  }
  writeVia(partial, 12 * MIB, bytes.length)
  partial.markWritten(12 * MIB, bytes.length)
  expect(held.every((promise) => promise !== undefined)).toBe(true)
  await Promise.all(held)
  expect((await partial.verify()).digest).toBe(digestOf(bytes))
  await partial.discard()
})

test('bytes that are few, not shared, far ahead or beyond the limit are read from the file', async () => {
  const partial = await open('k')
  const over: (Promise<void> | undefined)[] = []
  writeVia(partial, 0, bytes.length)
  expect(partial.markWritten(11 * MIB, 12 * MIB, undefined, bytes.subarray(11 * MIB, 12 * MIB))).toBeUndefined()
  expect(partial.markWritten(12 * MIB, bytes.length, undefined, shared(12 * MIB, bytes.length))).toBeUndefined()
  const more = await store.partial({ key: 'more', sizeBytes: 64 * MIB })
  expect(more.markWritten(40 * MIB, 42 * MIB, undefined, shared(0, 2 * MIB))).toBeUndefined()
  for (let at = 1; at <= 5; at += 1)
    over.push(more.markWritten(at * 4 * MIB, at * 4 * MIB + 4 * MIB, undefined, shared(0, 4 * MIB)))
  expect(over.filter((promise) => promise === undefined)).toHaveLength(1)
  await more.discard()
  await Promise.all(over)
  partial.markWritten(0, 11 * MIB)
  expect((await partial.publish()).digest).toBe(digestOf(bytes))
})

test('it is given back when its bytes are taken back, released or discarded', async () => {
  const partial = await open('k')
  const ahead = partial.markWritten(4 * MIB, 8 * MIB, undefined, shared(0, 4 * MIB))
  partial.unmark(5 * MIB, 5 * MIB + 1)
  await ahead
  const again = partial.markWritten(4 * MIB, 8 * MIB, undefined, shared(0, 4 * MIB))
  // declared anew, without the bytes
  partial.markWritten(4 * MIB, 8 * MIB)
  await again
  const last = partial.markWritten(8 * MIB, 12 * MIB, undefined, shared(0, 4 * MIB))
  expect(last).toBeDefined()
  await partial.release()
  await last
  const next = await open('k')
  const kept = next.markWritten(MIB, 2 * MIB, undefined, shared(0, MIB))
  await next.discard()
  await kept
})

test('the digest is that of the bytes declared last, whatever was held and released in between', async () => {
  const random = randomFrom(5)
  for (let round = 0; round < 5; round += 1) {
    const partial = await open(`k${round}`)
    for (let step = 0; step < 40; step += 1) {
      const start = random(12) * MIB
      const end = start + (1 + random(2)) * MIB
      if (random(4) === 0) {
        partial.unmark(start, Math.min(end, bytes.length))
        continue
      }
      const stop = Math.min(end, bytes.length)
      writeVia(partial, start, stop)
      const junk = random(5) === 0
      const memory = junk ? new Uint8Array(new SharedArrayBuffer(stop - start)) : shared(start, stop)
      void partial.markWritten(start, stop, undefined, random(3) === 0 ? undefined : memory)
      // other bytes were held, and do not count any more
      if (junk) partial.unmark(start, stop)
      if (random(5) === 0) await new Promise(setImmediate)
    }
    writeVia(partial, 0, bytes.length)
    for (let at = 0; at < bytes.length; at += MIB) {
      const end = Math.min(at + MIB, bytes.length)
      void partial.markWritten(at, end, undefined, shared(at, end))
    }
    expect(await codeOf(partial.verify())).toBeUndefined()
    await partial.discard()
  }
})
