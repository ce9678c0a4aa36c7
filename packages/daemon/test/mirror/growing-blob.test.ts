// A blob that is read while it is written: in a real store, with a partial blob that the test fills as it likes.
import { createHash } from 'node:crypto'
import type { DiskBlobStore, PartialBlob } from '@svc/cas'
import { openDiskStore } from '@svc/cas'
import { digestFromBytes } from '@svc/ref'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { GrowingBlob } from '../../src/mirror/growing-blob.ts'
import { temporaryFolder } from '../support/daemon.ts'

const SIZE_BYTES = 300_000
const right = Buffer.from(Array.from({ length: SIZE_BYTES }, (_, i) => (i * 7 + (i >> 8)) & 0xff))
const digest = digestFromBytes(createHash('sha256').update(right).digest())
const NEVER = new Promise<undefined>(() => undefined)
const QUICK = { trickleMs: 1, reserveBytes: 1000 }

let store: DiskBlobStore
let partial: PartialBlob
const undo: (() => Promise<void>)[] = []
beforeEach(async () => {
  const folders: (() => void | Promise<void>)[] = []
  store = await openDiskStore({ root: `${temporaryFolder((work) => folders.push(work))}/root`, hashThreads: 1 })
  undo.push(async () => {
    await store.close()
    for (const work of folders) await work()
  })
  partial = await store.partial({ key: digest, sizeBytes: SIZE_BYTES, digest })
})
afterEach(async () => {
  for (const work of undo.splice(0).reverse()) await work()
})

function growingOf(over: Promise<Error | undefined> = NEVER, options = QUICK): GrowingBlob {
  const blob = new GrowingBlob(store, { digest, sizeBytes: SIZE_BYTES }, { over }, options)
  undo.push(() => blob.close())
  return blob
}

/** What a response sends: `[start, end)`, in reads of any length. */
async function sent(blob: GrowingBlob, start = 0, end = SIZE_BYTES, seen?: (bytes: number) => Promise<void>) {
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

describe('a growing blob', () => {
  it('gives what is written, keeps a reserve, and lets it out little by little', async () => {
    await partial.write(0, right.subarray(0, 100_000))
    const blob = growingOf()
    expect(await blob.begins(0, 60_000)).toBe(true)
    expect(await blob.read(Buffer.alloc(65_536), 0)).toBe(65_535 - 1000)
    let offset = 65_535 - 1000
    while (offset < 99_000) offset += await blob.read(Buffer.alloc(65_536), offset)
    const little = await blob.read(Buffer.alloc(65_536), offset)
    expect(little).toBe(64)
  })

  it('gives the last byte when the whole is in the store, and not before', async () => {
    const blob = growingOf()
    let published = false
    const all = sent(blob, 0, SIZE_BYTES, async (bytes) => {
      if (bytes === SIZE_BYTES) expect(published).toBe(true)
    })
    await partial.write(0, right.subarray(0, 150_000))
    await partial.write(150_000, right.subarray(150_000))
    published = true
    await partial.publish()
    expect((await all).equals(right)).toBe(true)
  })

  it('does so with a part of it, too', async () => {
    await partial.write(0, right)
    const blob = growingOf()
    let published = false
    const part = sent(blob, 1000, 5000, async (bytes) => {
      if (bytes === 5000) return expect(published).toBe(true)
      if (bytes !== 4999) return
      published = true
      await partial.publish()
    })
    expect((await part).equals(right.subarray(1000, 5000))).toBe(true)
  })

  it.each([
    ['from the beginning', 0],
    ['from somewhere', 1000]
  ])('fails before the last byte when other bytes were given, %s', async (_, start) => {
    const wrong = Buffer.from(right)
    wrong[2000]! ^= 1
    await partial.write(0, wrong.subarray(0, 200_000))
    const blob = growingOf()
    let given = 0
    let mended: Promise<unknown> | undefined
    const all = sent(blob, start, SIZE_BYTES, async (bytes) => {
      given = bytes
      // the source finds out, and fetches again
      if (bytes > 100_000)
        mended ??= (async () => {
          await partial.write(0, right)
          await partial.publish()
        })()
      await mended
    })
    await expect(all).rejects.toMatchObject({ reason: 'other-bytes' })
    expect(given).toBe(SIZE_BYTES - 1)
  })

  it('fails when nothing more will come', async () => {
    const reason = new Error('the import failed')
    await expect(sent(growingOf(Promise.resolve(reason)))).rejects.toBe(reason)
    await expect(sent(growingOf(Promise.resolve(undefined)))).rejects.toMatchObject({ reason: 'absent' })
  })

  it('is read from the store where it is there', async () => {
    await partial.write(0, right)
    await partial.publish()
    expect((await sent(growingOf())).equals(right)).toBe(true)
  })

  it('says when nothing comes in time', async () => {
    expect(await growingOf().begins(0, 5)).toBe(false)
  })
})
