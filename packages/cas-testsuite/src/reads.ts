import type { BlobStore } from '@svc/cas'
import type { Sha256Digest } from '@svc/ref'
import { type ContractApi, codeOf, collect, digestOf, seededBytes } from './material.ts'

/** A fresh, empty store for one test. */
export interface ContractSubject<Store> {
  readonly store: Store
  /** Closes the store and deletes its files; called at the end of every test. */
  dispose(): Promise<void>
}

/**
 * The contract of everything that blobs are read from: a store, or a client of a daemon. `makeReads` receives the blobs
 * that must be readable.
 */
export function describeBlobReads(
  name: string,
  makeReads: (blobs: readonly Uint8Array[]) => Promise<ContractSubject<Pick<BlobStore, 'stat' | 'open'>>>,
  { describe, test, expect }: ContractApi
): void {
  const withBlob = async (
    bytes: Uint8Array,
    body: (reads: Pick<BlobStore, 'stat' | 'open'>, digest: Sha256Digest) => Promise<void>
  ) => {
    const subject = await makeReads([bytes])
    try {
      await body(subject.store, digestOf(bytes))
    } finally {
      await subject.dispose()
    }
  }
  const small = seededBytes(1000)

  describe(`${name}: reading`, () => {
    test('stat gives digest and size, or undefined for an absent blob', () =>
      withBlob(small, async (reads, digest) => {
        expect(await reads.stat(digest)).toEqual({ digest, sizeBytes: 1000 })
        expect(await reads.stat(digestOf(seededBytes(3)))).toBe(undefined)
      }))

    test('open of an absent blob is E_NOT_FOUND', () =>
      withBlob(small, async (reads) => {
        expect(await codeOf(reads.open(digestOf(seededBytes(3))))).toBe('E_NOT_FOUND')
      }))

    test('reads stay within the blob', () =>
      withBlob(small, async (reads, digest) => {
        const reader = await reads.open(digest)
        expect([reader.digest, reader.sizeBytes]).toEqual([digest, 1000])
        const target = new Uint8Array(600)
        expect(await reader.read(target, 0)).toBe(600)
        expect(Buffer.compare(target, small.subarray(0, 600))).toBe(0)
        expect(await reader.read(target, 600)).toBe(400)
        expect(Buffer.compare(target.subarray(0, 400), small.subarray(600))).toBe(0)
        expect(await reader.read(target, 1000)).toBe(0)
        for (const offset of [-1, 1001, 0.5, Number.NaN, Number.MAX_SAFE_INTEGER]) {
          expect(await codeOf(reader.read(target, offset))).toBe('E_RANGE')
        }
        await reader.close()
        await reader.close()
        expect(await codeOf(reader.read(target, 0))).toBe('E_CLOSED')
      }))

    test('streams the whole and any range; chunks stay valid', () => {
      const bytes = seededBytes(700_001)
      return withBlob(bytes, async (reads, digest) => {
        const ranges = [
          undefined,
          { start: 0, end: 0 },
          { start: 0, end: 1 },
          { start: 262_143, end: 262_145 },
          { start: 700_000, end: 700_001 }
        ]
        for (const range of ranges) {
          const got = Buffer.concat(await collect((await reads.open(digest)).stream(range)))
          expect(Buffer.compare(got, bytes.subarray(range?.start ?? 0, range?.end ?? bytes.length))).toBe(0)
        }
        for (const range of [
          { start: 1, end: 0 },
          { start: -1, end: 2 },
          { start: 0, end: 700_002 },
          { start: 0.5, end: 1 }
        ]) {
          const reader = await reads.open(digest)
          expect(await codeOf(collect(reader.stream(range)))).toBe('E_RANGE')
        }
      })
    })

    test('a cancelled stream closes its reader', () =>
      withBlob(seededBytes(700_001), async (reads, digest) => {
        const reader = await reads.open(digest)
        for await (const chunk of reader.stream()) {
          expect(chunk.length > 0).toBe(true)
          break
        }
        expect(await codeOf(reader.read(new Uint8Array(1), 0))).toBe('E_CLOSED')
      }))

    test('an empty blob can be read', () =>
      withBlob(new Uint8Array(0), async (reads, digest) => {
        const reader = await reads.open(digest)
        expect(reader.sizeBytes).toBe(0)
        expect(await collect(reader.stream())).toEqual([])
      }))
  })
}
