// A blob that is read while it arrives, in a real store. The test decides what is proven.
import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import type { DiskBlobStore } from '@svc/cas'
import { openDiskStore } from '@svc/cas'
import { digestFromBytes } from '@svc/ref'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { temporaryFolder } from '../../daemon/test/support/daemon.ts'
import { ArrivingBlob, type ArrivingOptions } from '../src/arriving-blob.ts'

const SIZE_BYTES = 300_000
const right = Buffer.from(Array.from({ length: SIZE_BYTES }, (_, i) => (i * 7 + (i >> 8)) & 0xff))
const digest = digestFromBytes(createHash('sha256').update(right).digest())
const NEVER = new Promise<undefined>(() => undefined)
const QUICK = { trickleMs: 1, reserveBytes: 1000 }

let store: DiskBlobStore
const undo: (() => Promise<void>)[] = []
beforeEach(async () => {
  const folders: (() => void | Promise<void>)[] = []
  store = await openDiskStore({ root: `${temporaryFolder((work) => folders.push(work))}/root`, hashThreads: 1 })
  undo.push(async () => {
    await store.close()
    for (const work of folders) await work()
  })
})
afterEach(async () => {
  for (const work of undo.splice(0).reverse()) await work()
})

const arrive = (): Promise<unknown> => store.ingest(Readable.from([right]))

function arriving(options: Partial<ArrivingOptions> = {}, over: Promise<Error | undefined> = NEVER): ArrivingBlob {
  const all = { ...QUICK, mayRead: async () => true, ...options }
  const blob = new ArrivingBlob(store, { digest, sizeBytes: SIZE_BYTES }, { over }, all)
  undo.push(() => blob.close())
  return blob
}

/** The first bytes have passed their proofs. */
function proofs(bytes = 0) {
  let tell = (): void => undefined
  let proven = bytes
  return {
    prove: (until: number): void => {
      proven = until
      tell()
    },
    proven: (onNews: () => void) => {
      tell = onNews
      return {
        until: (offset: number, end: number) => Math.max(offset, Math.min(end, proven)),
        read: async (target: Uint8Array, offset: number) => right.copy(target, 0, offset, offset + target.length),
        close: () => undefined
      }
    }
  }
}

/** Reads `[start, end)` like a response, in reads of any length. */
async function sent(blob: ArrivingBlob, start = 0, end = SIZE_BYTES, seen?: (bytes: number) => Promise<void>) {
  const chunks: Buffer[] = []
  let offset = start
  while (offset < end) {
    const chunk = Buffer.alloc(Math.min(65_536, end - offset))
    const count = await blob.read(chunk, offset)
    chunks.push(chunk.subarray(0, count))
    offset += count
    await seen?.(offset)
  }
  return Buffer.concat(chunks)
}

describe('a blob that arrives', () => {
  it('sends proven bytes, keeps a reserve, and releases it slowly', async () => {
    const blob = arriving(proofs(100_000))
    expect(await blob.read(Buffer.alloc(65_536), 0)).toBe(65_536 - 1000)
    let offset = 65_536 - 1000
    while (offset < 99_000) offset += await blob.read(Buffer.alloc(65_536), offset)
    expect(await blob.read(Buffer.alloc(65_536), offset)).toBe(64)
  })

  it.each([
    ['the whole', 0, SIZE_BYTES],
    ['a part', 1000, 5000]
  ])('sends the last byte of %s only when the whole blob is in the store', async (_, start, end) => {
    const source = proofs()
    let isHere = false
    const all = sent(arriving(source), start, end, async (bytes) => {
      if (bytes === end) return expect(isHere).toBe(true)
      if (bytes < end - 1 || isHere) return
      isHere = true
      await arrive()
    })
    source.prove(150_000)
    source.prove(SIZE_BYTES)
    expect((await all).equals(right.subarray(start, end))).toBe(true)
  })

  it('sends a requested part once all of it is proven, and nothing beyond', async () => {
    const source = proofs(5000)
    const blob = arriving({ ...source, inParts: true, trickleMs: 3_600_000 })
    expect((await sent(blob, 1000, 5000)).equals(right.subarray(1000, 5000))).toBe(true)
    const more = blob.read(Buffer.alloc(2000), 4500)
    expect(await Promise.race([more, new Promise((resolve) => setImmediate(() => resolve('waits')))])).toBe('waits')
    source.prove(6500)
    expect(await more).toBe(2000)
  })

  it('sends unproven bytes only after the whole blob is verified', async () => {
    let isHere = false
    const all = sent(arriving(), 0, SIZE_BYTES, async () => expect(isHere).toBe(true))
    const partial = await store.partial({ key: digest, sizeBytes: SIZE_BYTES, digest })
    await partial.write(0, right)
    isHere = true
    await partial.commit()
    expect((await all).equals(right)).toBe(true)
  })

  it('fails when no more bytes will arrive', async () => {
    const reason = new Error('the import failed')
    await expect(sent(arriving({}, Promise.resolve(reason)))).rejects.toBe(reason)
  })

  it('has the client ask again after an import that keeps the file in an archive', async () => {
    const again = { status: 429, retryAfterSeconds: 1, message: expect.stringContaining(digest) }
    await expect(sent(arriving({}, Promise.resolve(undefined)))).rejects.toMatchObject(again)
    await expect(arriving({}, Promise.resolve(undefined)).whole(60_000)).rejects.toMatchObject(again)
  })

  it('is not read from the store without permission, even when no more bytes will arrive', async () => {
    await arrive()
    await expect(sent(arriving({ mayRead: async () => false }, Promise.resolve(undefined)))).rejects.toThrow(digest)
  })

  it('is complete if it arrives in time', async () => {
    expect(await arriving().whole(5)).toBeUndefined()
    const waiting = arriving().whole(60_000)
    await arrive()
    const whole = await waiting
    expect(whole?.sizeBytes).toBe(SIZE_BYTES)
    await whole?.close()
  })
})
