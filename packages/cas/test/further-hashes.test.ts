import * as fs from 'node:fs'
import { join } from 'node:path'
import { type DiskBlobStore, openDiskStore, type PartialBlob } from '@svc/cas'
import { blockAttachment, blockHashes, codeOf, digestOf, seededBytes } from '@svc/cas-testsuite'
import { randomFrom } from '@svc/testkit/mutate'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { temporaryFolder } from './temporary-root.ts'

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

const attachment = blockAttachment
const writeVia = (partial: PartialBlob, bytes: Uint8Array, start: number, end: number): void =>
  void fs.writeSync(partial.fd as number, bytes, start, end - start, start)

describe('further hashes of a large file', () => {
  const bytes = seededBytes(8_500_300)
  const key = { key: 'k', sizeBytes: bytes.length, digest: digestOf(bytes) }

  test('cover all bytes, including those of an earlier holder', async () => {
    const first = await store.partial(key, { attachments: [attachment] })
    for (const [start, end] of [
      [0, 2_000_000],
      [3_000_000, bytes.length]
    ] as const) {
      writeVia(first, bytes, start, end)
      first.markWritten(start, end)
    }
    await first.release()
    const second = await store.partial(key, { attachments: [attachment] })
    writeVia(second, bytes, 2_000_000, 3_000_000)
    second.markWritten(2_000_000, 3_000_000)
    const { attachments } = await second.commit()
    expect(Buffer.compare(attachments.blocks as Uint8Array, blockHashes(bytes))).toBe(0)
  })

  test('match the bytes that were written last, after any order of writes, invalidations and hashing', async () => {
    const random = randomFrom(11)
    for (let round = 0; round < 4; round++) {
      const partial = await store.partial({ ...key, key: `k${round}` }, { attachments: [attachment] })
      const junk = new Uint8Array(bytes.length)
      for (let step = 0; step < 30; step++) {
        const start = random(bytes.length)
        const end = Math.min(bytes.length, start + random(2_500_000))
        const isRight = random(10) < 7
        const source = isRight ? bytes : junk
        partial.unmark(start, end)
        writeVia(partial, source, start, end)
        partial.markWritten(start, end)
        if (random(10) < 3) await new Promise(setImmediate)
        if (isRight) continue
        partial.unmark(start, end)
      }
      for (const [start, end] of gaps(partial)) {
        writeVia(partial, bytes, start, end)
        partial.markWritten(start, end)
      }
      const { digest, attachments } = await partial.verify()
      expect(digest).toBe(key.digest)
      expect(Buffer.compare(attachments.blocks as Uint8Array, blockHashes(bytes))).toBe(0)
      await partial.discard()
    }
  })

  test('and the digest are correct when bytes are marked twice without an invalidation', async () => {
    const partial = await store.partial({ key: 'k', sizeBytes: bytes.length }, { attachments: [attachment] })
    const before = Uint8Array.from(bytes).fill(1, 1000, 4_000_000)
    for (const content of [before, bytes]) {
      writeVia(partial, content, 0, content.length)
      partial.markWritten(0, content.length)
      await partial.verify()
    }
    const { digest, attachments } = await partial.commit()
    expect(digest).toBe(key.digest)
    expect(Buffer.compare(attachments.blocks as Uint8Array, blockHashes(bytes))).toBe(0)
  })

  test('continue from one read to the next', async () => {
    const sizeBytes = 68_000_300
    const partial = await store.partial({ key: 'k', sizeBytes }, { attachments: [attachment] })
    fs.ftruncateSync(partial.fd as number, sizeBytes)
    partial.markWritten(0, sizeBytes)
    const { attachments } = await partial.verify()
    expect(Buffer.compare(attachments.blocks as Uint8Array, blockHashes(new Uint8Array(sizeBytes)))).toBe(0)
    await partial.discard()
  })

  test('are discarded with bytes whose digest was wrong', async () => {
    const partial = await store.partial(key, { attachments: [attachment] })
    const wrong = Uint8Array.from(bytes)
    wrong[123_456] = wrong[123_456]! ^ 1
    writeVia(partial, wrong, 0, wrong.length)
    partial.markWritten(0, wrong.length)
    expect(await codeOf(partial.verify())).toBe('E_DIGEST_MISMATCH')
    expect(partial.ranges()).toEqual([])
    writeVia(partial, bytes, 0, bytes.length)
    partial.markWritten(0, bytes.length)
    const { attachments } = await partial.commit()
    expect(Buffer.compare(attachments.blocks as Uint8Array, blockHashes(bytes))).toBe(0)
  })

  test('of a file that another program truncated are an error', async () => {
    const partial = await store.partial({ key: 'k', sizeBytes: bytes.length }, { attachments: [attachment] })
    fs.ftruncateSync(partial.fd as number, 1_000_000)
    partial.markWritten(0, bytes.length)
    expect(await codeOf(partial.verify())).toBe('E_IO')
    await partial.discard()
  })

  test('stop with the signal, and the descriptor is free afterwards', async () => {
    const stop = new AbortController()
    const partial = await store.partial(key, { attachments: [attachment], signal: stop.signal })
    writeVia(partial, bytes, 0, bytes.length)
    partial.markWritten(0, bytes.length)
    const verified = partial.verify()
    stop.abort()
    expect(await codeOf(verified)).toBe('E_ABORTED')
    await partial.discard()
  })
})

function gaps(partial: PartialBlob): [number, number][] {
  const found: [number, number][] = []
  let at = 0
  for (const [start, end] of [...partial.ranges(), [partial.sizeBytes, partial.sizeBytes] as const]) {
    if (start > at) found.push([at, start])
    at = Math.max(at, end)
  }
  return found
}
