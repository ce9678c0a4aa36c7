import type { BlobStore } from '@svc/cas'
import {
  blockAttachment,
  blockHashes,
  type ContractApi,
  codeOf,
  collect,
  digestOf,
  inChunks,
  seededBytes
} from './material.ts'

/** The store contract's section on partial blobs. */
export function describePartials(
  name: string,
  withStore: (body: (store: BlobStore) => Promise<void>) => Promise<void>,
  { describe, test, expect }: ContractApi
): void {
  describe(`${name}: partial blobs`, () => {
    test('are written in any order, hashed on the way, and removed by a commit', () =>
      withStore(async (store) => {
        for (const sizeBytes of [0, 1, 300_000, 9_000_000]) {
          const bytes = seededBytes(sizeBytes)
          const partial = await store.partial({ key: `k${sizeBytes}`, sizeBytes }, { attachments: [blockAttachment] })
          const steps = Array.from({ length: Math.ceil(sizeBytes / 70_001) }, (_, i) => i * 70_001)
          for (const start of [...steps.filter((_, i) => i % 2 === 1), ...steps.filter((_, i) => i % 2 === 0)]) {
            await partial.write(start, bytes.subarray(start, start + 70_001))
          }
          expect(partial.ranges()).toEqual(sizeBytes === 0 ? [] : [[0, sizeBytes]])
          expect(await store.stat(digestOf(bytes))).toBe(undefined)
          const result = await partial.commit()
          expect([result.digest, result.sizeBytes, result.existed]).toEqual([digestOf(bytes), sizeBytes, false])
          expect(Buffer.compare(result.attachments.blocks as Uint8Array, blockHashes(bytes))).toBe(0)
          expect(await codeOf(partial.write(0, new Uint8Array(0)))).toBe('E_CLOSED')
          const got = Buffer.concat(await collect((await store.open(result.digest)).stream()))
          expect(Buffer.compare(got, bytes)).toBe(0)
          const again = await store.partial({ key: `k${sizeBytes}`, sizeBytes })
          expect(again.ranges()).toEqual([])
          await again.discard()
        }
      }))

    test('resume where the last holder released them', () =>
      withStore(async (store) => {
        const bytes = seededBytes(500_000)
        const key = { key: 'git-blob-sha1:1234', sizeBytes: bytes.length, digest: digestOf(bytes) }
        const first = await store.partial(key)
        await first.write(100, bytes.subarray(100, 400_000))
        await first.release()
        await first.release()
        expect(await codeOf(first.verify())).toBe('E_CLOSED')
        const second = await store.partial(key)
        expect(second.ranges()).toEqual([[100, 400_000]])
        await second.write(0, bytes.subarray(0, 100))
        await second.write(400_000, bytes.subarray(400_000))
        expect((await second.commit()).digest).toBe(key.digest)
      }))

    test('of another size or digest start empty', () =>
      withStore(async (store) => {
        const first = await store.partial({ key: 'k', sizeBytes: 100 })
        await first.write(0, new Uint8Array(50))
        await first.release()
        const second = await store.partial({ key: 'k', sizeBytes: 101 })
        expect([second.ranges(), second.sizeBytes]).toEqual([[], 101])
        await second.discard()
      }))

    test('have one holder; the others wait in order, and may give up', () =>
      withStore(async (store) => {
        const key = { key: 'k', sizeBytes: 10 }
        const order: number[] = []
        const first = await store.partial(key)
        const second = store.partial(key).then(async (partial) => {
          order.push(2)
          await partial.release()
        })
        const controller = new AbortController()
        const third = codeOf(store.partial(key, { signal: controller.signal }))
        const fourth = store.partial(key).then(async (partial) => {
          order.push(4)
          await partial.discard()
        })
        controller.abort()
        expect(await third).toBe('E_ABORTED')
        order.push(1)
        await first.release()
        await Promise.all([second, fourth])
        expect(order).toEqual([1, 2, 4])
      }))

    test('distinguish missing bytes from wrong ones', () =>
      withStore(async (store) => {
        const bytes = seededBytes(3_000_000)
        const partial = await store.partial({ key: 'k', sizeBytes: bytes.length, digest: digestOf(bytes) })
        await partial.write(0, bytes.subarray(0, 2_999_999))
        expect(await codeOf(partial.verify())).toBe('E_INCOMPLETE')
        expect(await codeOf(partial.commit())).toBe('E_INCOMPLETE')
        await partial.write(2_999_999, new Uint8Array([(bytes[2_999_999] as number) ^ 1]))
        expect(await codeOf(partial.commit())).toBe('E_DIGEST_MISMATCH')
        expect(partial.ranges()).toEqual([])
        await partial.write(0, bytes)
        expect((await partial.commit()).existed).toBe(false)
      }))

    test('hash bytes again that were unmarked or overwritten', () =>
      withStore(async (store) => {
        const bytes = seededBytes(5_000_000)
        const partial = await store.partial({ key: 'k', sizeBytes: bytes.length }, { attachments: [blockAttachment] })
        await partial.write(0, new Uint8Array(bytes.length))
        expect((await partial.verify()).digest).toBe(digestOf(new Uint8Array(bytes.length)))
        partial.unmark(1000, 4_000_000)
        expect(partial.ranges()).toEqual([
          [0, 1000],
          [4_000_000, 5_000_000]
        ])
        expect(await codeOf(partial.verify())).toBe('E_INCOMPLETE')
        await partial.write(0, bytes.subarray(0, 2_500_000))
        await partial.write(2_000_000, bytes.subarray(2_000_000))
        const result = await partial.commit()
        expect(result.digest).toBe(digestOf(bytes))
        expect(Buffer.compare(result.attachments.blocks as Uint8Array, blockHashes(bytes))).toBe(0)
      }))

    test('can be verified and read without being committed', () =>
      withStore(async (store) => {
        const bytes = seededBytes(100_000)
        const partial = await store.partial({ key: 'k', sizeBytes: bytes.length, digest: digestOf(bytes) })
        await partial.write(0, bytes.subarray(0, 50_000))
        expect(await codeOf(partial.read(new Uint8Array(10), 49_995))).toBe('E_INCOMPLETE')
        await partial.write(50_000, bytes.subarray(50_000))
        expect((await partial.verify()).digest).toBe(digestOf(bytes))
        const target = new Uint8Array(60_000)
        expect(await partial.read(target, 50_000)).toBe(50_000)
        expect(Buffer.compare(target.subarray(0, 50_000), bytes.subarray(50_000))).toBe(0)
        await partial.discard()
        await partial.discard()
        expect(await store.stat(digestOf(bytes))).toBe(undefined)
      }))

    test('have the same further hashes in any order of writes', () =>
      withStore(async (store) => {
        const bytes = seededBytes(100_300)
        const partial = await store.partial({ key: 'k', sizeBytes: bytes.length }, { attachments: [blockAttachment] })
        const write = (start: number, end: number): Promise<void> => partial.write(start, bytes.subarray(start, end))
        await write(50_500, bytes.length)
        await write(0, 20_000)
        await partial.write(20_000, new Uint8Array(30_500))
        partial.unmark(20_000, 50_500)
        await write(20_000, 30_999)
        await write(30_999, 31_001)
        await write(31_001, 50_500)
        const { digest, attachments } = await partial.commit()
        expect(digest).toBe(digestOf(bytes))
        expect(Buffer.compare(attachments.blocks as Uint8Array, blockHashes(bytes))).toBe(0)
      }))

    test('refuse keys, sizes and ranges out of bounds', () =>
      withStore(async (store) => {
        const partial = await store.partial({ key: 'k', sizeBytes: 10 })
        for (const offset of [-1, 6, 10.5, Number.NaN, Number.MAX_SAFE_INTEGER]) {
          expect(await codeOf(partial.write(offset, new Uint8Array(5)))).toBe('E_RANGE')
        }
        for (const [start, end] of [
          [-1, 2],
          [3, 2],
          [0, 11],
          [0, Number.NaN]
        ] as const) {
          for (const change of [() => partial.markWritten(start, end), () => partial.unmark(start, end)]) {
            expect(await codeOf(Promise.resolve().then(change))).toBe('E_RANGE')
          }
        }
        expect(partial.ranges()).toEqual([])
        await partial.discard()
        for (const key of ['', 'x'.repeat(201)])
          expect(await codeOf(store.partial({ key, sizeBytes: 1 }))).toBe('E_RANGE')
        for (const sizeBytes of [-1, 0.5, Number.NaN])
          expect(await codeOf(store.partial({ key: 'k', sizeBytes }))).toBe('E_RANGE')
      }))

    test('commit a blob that exists, and say so', () =>
      withStore(async (store) => {
        const bytes = seededBytes(100_000)
        await store.ingest(inChunks(bytes, 1000))
        const partial = await store.partial({ key: 'k', sizeBytes: bytes.length })
        await partial.write(0, bytes)
        await partial.checkpoint()
        expect((await partial.commit()).existed).toBe(true)
      }))

    test('are discarded when accept rejects', () =>
      withStore(async (store) => {
        const partial = await store.partial({ key: 'k', sizeBytes: 3 })
        await partial.write(0, seededBytes(3))
        const refusal = new Error('no')
        const accept = (): void => {
          throw refusal
        }
        expect(await partial.commit({ accept }).catch((error: unknown) => error)).toBe(refusal)
        expect(await store.stat(digestOf(seededBytes(3)))).toBe(undefined)
        const again = await store.partial({ key: 'k', sizeBytes: 3 })
        expect(again.ranges()).toEqual([])
        await again.discard()
      }))
  })
}
