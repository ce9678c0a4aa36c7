import type { BlobStore } from '@svc/cas'
import { codeOf, collect, createMemoryStore, digestOf, seededBytes } from '@svc/cas-testsuite'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { freshDiskStore } from './fresh-disk-store.ts'

const stores: readonly [name: string, open: () => Promise<{ store: BlobStore; dispose(): Promise<void> }>][] = [
  ['memory', async () => ({ store: createMemoryStore(), dispose: async () => undefined })],
  ['disk', freshDiskStore({})]
]

async function* cut(bytes: Uint8Array, lengths: readonly number[]): AsyncGenerator<Uint8Array> {
  let at = 0
  for (let i = 0; at < bytes.length; i++) {
    const length = lengths[i % lengths.length] as number
    yield bytes.subarray(at, at + length)
    at += length
  }
}

/** What is done to a store. Few blobs and keys, so that steps meet. */
const step = fc.record({
  blob: fc.nat(4),
  act: fc.constantFrom('ingest', 'wrong digest', 'flip', 'write', 'commit', 'discard', 'verify', 'read'),
  start: fc.nat(100),
  length: fc.integer({ min: 1, max: 100 }),
  cuts: fc.array(fc.integer({ min: 1, max: 1000 }), { minLength: 1, maxLength: 5 })
})
const blobs = [0, 1, 2, 3, 4].map((i) => seededBytes([0, 1, 100, 5000, 270_000][i] as number, i + 1))

describe.each(stores)('%s store', (_, open) => {
  test('against a model map', async () => {
    const { store, dispose } = await open()
    /** What the store must hold; both grow over the runs. */
    const model = new Map<string, Uint8Array>()
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 15 }), async (steps) => {
        for (const { blob, act, start, length, cuts } of steps) {
          const bytes = blobs[blob] as Uint8Array
          const digest = digestOf(bytes)
          const key = { key: `k${blob}`, sizeBytes: bytes.length }
          // positions in hundredths of the blob.
          const [from, to] = [start, Math.min(100, start + length)].map((part) =>
            Math.floor((bytes.length * part) / 100)
          ) as [number, number]
          if (act === 'ingest') {
            expect(
              (
                await store.ingest(
                  cut(
                    bytes,
                    cuts.map((c) => c * 100)
                  ),
                  { digest }
                )
              ).existed
            ).toBe(model.has(digest))
            model.set(digest, bytes)
          } else if (act === 'wrong digest') {
            expect(await codeOf(store.ingest(cut(bytes, [9999]), { digest: digestOf(Buffer.from('other')) }))).toBe(
              'E_DIGEST_MISMATCH'
            )
          } else if (act === 'flip' && bytes.length > 0) {
            const flipped = bytes.slice()
            flipped[from % bytes.length] = (flipped[from % bytes.length] as number) ^ (1 << (length & 7))
            expect(await codeOf(store.ingest(cut(flipped, [70_000]), { digest }))).toBe('E_DIGEST_MISMATCH')
          } else if (act === 'write') {
            const partial = await store.partial(key)
            if (to > from) await partial.write(from, bytes.subarray(from, to))
            await partial.release()
          } else if (act === 'commit') {
            const partial = await store.partial(key)
            const whole = partial.ranges().reduce((sum, [low, high]) => sum + high - low, 0) === bytes.length
            if (whole) {
              expect((await partial.commit()).digest).toBe(digest)
              model.set(digest, bytes)
            } else {
              expect(await codeOf(partial.commit())).toBe('E_INCOMPLETE')
              await partial.release()
            }
          } else if (act === 'discard') {
            await (await store.partial(key)).discard()
          } else if (act === 'verify') {
            expect((await store.verify(digest)).status).toBe(model.has(digest) ? 'ok' : 'missing')
          } else if (act === 'read' && model.has(digest)) {
            const reader = await store.open(digest)
            const got = Buffer.concat(await collect(reader.stream({ start: from, end: Math.max(from, to) })))
            expect(Buffer.compare(got, bytes.subarray(from, Math.max(from, to)))).toBe(0)
          }
        }
        const listed = (await collect(store.list())).map((info) => [info.digest, info.sizeBytes])
        expect(listed).toEqual(
          [...model]
            .map(([digest, bytes]) => [digest, bytes.length])
            .sort(([a], [b]) => ((a as string) < (b as string) ? -1 : 1))
        )
      }),
      { numRuns: 25 }
    )
    await dispose()
  })
})
