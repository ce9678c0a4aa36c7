// One file because it is one suite: the contract of a store, in reading order.

import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { BlobStore, HashAttachment } from '@svc/cas'
import type { Sha256Digest } from '@svc/ref'
import { describeLeases } from './leases.ts'
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
import { describePartials } from './partials.ts'
import { type ContractSubject, describeBlobReads } from './reads.ts'

/** Sizes on both sides of the thresholds between the ways to ingest: empty, one block, in place, by thread. */
const SIZES = [0, 1, 1000, 65_536, 262_143, 262_144, 262_145, 524_288, 1_048_577, 3_000_000]

/** The contract of {@link BlobStore}, for any implementation. Call it from a test file of that implementation. */
export function describeBlobStore(
  name: string,
  makeStore: () => Promise<ContractSubject<BlobStore>>,
  api: ContractApi
): void {
  const { describe, test, expect } = api
  const withStore = async (body: (store: BlobStore) => Promise<void>): Promise<void> => {
    const subject = await makeStore()
    try {
      await body(subject.store)
    } finally {
      await subject.dispose()
    }
  }
  const digests = async (store: BlobStore): Promise<string[]> =>
    (await collect(store.list())).map(({ digest }) => digest)

  describeBlobReads(
    name,
    async (blobs) => {
      const subject = await makeStore()
      for (const bytes of blobs) await subject.store.ingest(inChunks(bytes, 65_536))
      return subject
    },
    api
  )

  describe(`${name}: ingest`, () => {
    test('takes any size in any chunks, with further hashes in the same pass', () =>
      withStore(async (store) => {
        for (const sizeBytes of SIZES) {
          const bytes = seededBytes(sizeBytes, sizeBytes + 7)
          const [first, second] = [
            await store.ingest(inChunks(bytes, 100_003), { attachments: [blockAttachment] }),
            await store.ingest(inChunks(bytes, 1 << 20), {
              digest: digestOf(bytes),
              sizeBytes,
              attachments: [blockAttachment]
            })
          ]
          expect({ ...first, attachments: {} }).toEqual({
            digest: digestOf(bytes),
            sizeBytes,
            existed: false,
            attachments: {}
          })
          expect(second.existed).toBe(true)
          for (const { attachments } of [first, second]) {
            expect(Buffer.compare(attachments.blocks as Uint8Array, blockHashes(bytes))).toBe(0)
          }
          const got = Buffer.concat(await collect((await store.open(first.digest)).stream()))
          expect(Buffer.compare(got, bytes)).toBe(0)
        }
        const listed = await digests(store)
        expect(listed).toEqual([...listed].sort())
        expect(listed.length).toBe(SIZES.length)
      }))

    test('takes a descriptor, and leaves it open', () =>
      withStore(async (store) => {
        const folder = mkdtempSync(join(tmpdir(), 'svc-contract-'))
        try {
          for (const sizeBytes of [0, 1000, 1_048_577, 9_000_001]) {
            const bytes = seededBytes(sizeBytes)
            writeFileSync(join(folder, 'file'), bytes)
            const fd = openSync(join(folder, 'file'), 'r')
            const result = await store.ingest({ fd }, { attachments: [blockAttachment] })
            expect(result.digest).toBe(digestOf(bytes))
            expect(Buffer.compare(result.attachments.blocks as Uint8Array, blockHashes(bytes))).toBe(0)
            expect(await codeOf(store.ingest({ fd }, { sizeBytes: sizeBytes + 1 }))).toBe('E_SIZE_MISMATCH')
            closeSync(fd)
          }
        } finally {
          rmSync(folder, { recursive: true })
        }
      }))

    test('a source may use one buffer again and again, and yield empty chunks', () =>
      withStore(async (store) => {
        const bytes = seededBytes(600_000)
        async function* reusing(): AsyncGenerator<Uint8Array> {
          const buffer = new Uint8Array(50_000)
          for (let i = 0; i < bytes.length; i += buffer.length) {
            buffer.set(bytes.subarray(i, i + buffer.length))
            yield buffer
            yield new Uint8Array(0)
          }
        }
        expect((await store.ingest(reusing())).digest).toBe(digestOf(bytes))
      }))

    test('refuses one flipped bit, one byte more, one byte less', () =>
      withStore(async (store) => {
        for (const sizeBytes of [1000, 600_000]) {
          const bytes = seededBytes(sizeBytes)
          const expected = { digest: digestOf(bytes), sizeBytes }
          for (const at of [0, sizeBytes >> 1, sizeBytes - 1]) {
            const flipped = bytes.slice()
            flipped[at] = (flipped[at] as number) ^ 1
            expect(await codeOf(store.ingest(inChunks(flipped, 65_536), expected))).toBe('E_DIGEST_MISMATCH')
          }
          expect(await codeOf(store.ingest(inChunks(bytes.subarray(1), 65_536), expected))).toBe('E_SIZE_MISMATCH')
          const more = new Uint8Array(sizeBytes + 1)
          more.set(bytes)
          expect(await codeOf(store.ingest(inChunks(more, 65_536), expected))).toBe('E_SIZE_MISMATCH')
        }
        expect(await digests(store)).toEqual([])
      }))

    test('cancels an endless source once it exceeds the limit, and lets it clean up', () =>
      withStore(async (store) => {
        for (const sizeBytes of [1000, 600_000]) {
          let cleaned = false
          async function* endless(): AsyncGenerator<Uint8Array> {
            try {
              for (;;) yield new Uint8Array(10_000)
            } finally {
              cleaned = true
            }
          }
          expect(await codeOf(store.ingest(endless(), { sizeBytes }))).toBe('E_SIZE_MISMATCH')
          expect(cleaned).toBe(true)
        }
      }))

    test('passes the source’s own error on, and keeps nothing', () =>
      withStore(async (store) => {
        for (const sizeBytes of [1000, 600_000]) {
          const mine = new Error('the source broke')
          async function* breaking(): AsyncGenerator<Uint8Array> {
            yield* inChunks(seededBytes(sizeBytes), 65_536)
            throw mine
          }
          const error = await store.ingest(breaking()).catch((thrown: unknown) => thrown)
          expect(error).toBe(mine)
        }
        expect(await digests(store)).toEqual([])
      }))

    test('calls accept before a blob becomes addressable; a rejection keeps nothing', () =>
      withStore(async (store) => {
        for (const sizeBytes of [1000, 600_000]) {
          const bytes = seededBytes(sizeBytes)
          const refusal = new Error('no')
          const accept = async (result: { digest: Sha256Digest }): Promise<void> => {
            expect([result.digest, await store.stat(result.digest)]).toEqual([digestOf(bytes), undefined])
            throw refusal
          }
          expect(await store.ingest(inChunks(bytes, 65_536), { accept }).catch((error: unknown) => error)).toBe(refusal)
          expect(await store.stat(digestOf(bytes))).toBe(undefined)
        }
      }))

    test('removes a blob that no reader has open, if it may; it can be ingested again', () =>
      withStore(async (store) => {
        const bytes = seededBytes(70_000)
        const { digest, sizeBytes } = await store.ingest(inChunks(bytes, 65_536))
        const asked: unknown[] = []
        const keep = (blob: { readonly ageMs: number }): boolean => {
          asked.push(blob)
          expect(blob.ageMs >= 0).toBe(true)
          return false
        }
        expect(await store.remove(digest, { may: keep })).toBe(undefined)
        expect(asked.length).toBe(1)
        const reader = await store.open(digest)
        expect([store.isLeased(digest), await store.remove(digest, { may: keep })]).toEqual([true, undefined])
        expect(asked.length).toBe(1)
        await reader.close()
        expect(await store.remove(digest, { may: () => true })).toEqual({ digest, sizeBytes })
        expect(await store.stat(digest)).toBe(undefined)
        expect(await codeOf(store.open(digest))).toBe('E_NOT_FOUND')
        expect([store.isLeased(digest), await store.remove(digest)]).toEqual([false, undefined])
        const again = await store.ingest(inChunks(bytes, 65_536))
        expect([again.existed, (await store.stat(digest))?.sizeBytes]).toEqual([false, sizeBytes])
      }))

    test('an abort ends the wait for a silent source', () =>
      withStore(async (store) => {
        for (const sizeBytes of [1000, 600_000]) {
          const controller = new AbortController()
          async function* silent(): AsyncGenerator<Uint8Array> {
            yield* inChunks(seededBytes(sizeBytes), 65_536)
            controller.abort()
            await new Promise(() => undefined)
          }
          expect(await codeOf(store.ingest(silent(), { signal: controller.signal }))).toBe('E_ABORTED')
        }
        expect(await codeOf(store.ingest(inChunks(seededBytes(9), 9), { signal: AbortSignal.abort() }))).toBe(
          'E_ABORTED'
        )
        expect(await digests(store)).toEqual([])
      }))

    test('a further hash that fails is E_ATTACHMENT', () =>
      withStore(async (store) => {
        const bad = (code: string): HashAttachment => ({
          name: 'bad',
          module: `data:text/javascript,${encodeURIComponent(code)}`
        })
        for (const sizeBytes of [1000, 600_000]) {
          for (const code of [
            'throw new Error("x")',
            'export default () => ({ update() { throw new Error("y") }, digest() {} })'
          ]) {
            const source = inChunks(seededBytes(sizeBytes), 65_536)
            expect(await codeOf(store.ingest(source, { attachments: [bad(code)] }))).toBe('E_ATTACHMENT')
          }
        }
        expect(await digests(store)).toEqual([])
      }))

    test('fifty writers of one blob all succeed, one of them first', () =>
      withStore(async (store) => {
        for (const sizeBytes of [1000, 400_000]) {
          const bytes = seededBytes(sizeBytes)
          const results = await Promise.all(
            Array.from({ length: 50 }, (_, i) => store.ingest(inChunks(bytes, 10_000 + i)))
          )
          expect(results.filter(({ existed }) => !existed).length).toBe(1)
        }
        expect((await digests(store)).length).toBe(2)
      }))
  })

  describePartials(name, withStore, api)
  describeLeases(name, withStore, api)

  describe(`${name}: verify, scrub, close`, () => {
    test('verify distinguishes present from missing blobs, and gives further hashes', () =>
      withStore(async (store) => {
        const bytes = seededBytes(1_500_000)
        const { digest } = await store.ingest(inChunks(bytes, 65_536))
        const { status, sizeBytes, attachments } = await store.verify(digest, { attachments: [blockAttachment] })
        expect([status, sizeBytes]).toEqual(['ok', bytes.length])
        expect(Buffer.compare(attachments.blocks as Uint8Array, blockHashes(bytes))).toBe(0)
        expect((await store.verify(digestOf(seededBytes(5)))).status).toBe('missing')
      }))

    test('scrub counts everything, up to the totals', () =>
      withStore(async (store) => {
        for (let i = 0; i < 12; i++) await store.ingest(inChunks(seededBytes(i * 1000, i), 512))
        let last: unknown
        const report = await store.scrub({ onProgress: (done) => (last = done) })
        expect(report).toEqual({ checked: 12, mismatched: [] })
        expect(last).toEqual({ blobs: 12, blobsTotal: 12, bytes: 66_000, bytesTotal: 66_000 })
        expect(await codeOf(store.scrub({ signal: AbortSignal.abort() }))).toBe('E_ABORTED')
      }))

    test('close aborts what is under way; afterwards everything is E_CLOSED', () =>
      withStore(async (store) => {
        const bytes = seededBytes(1000)
        const { digest } = await store.ingest(inChunks(bytes, 100))
        const { promise: started, resolve } = Promise.withResolvers<void>()
        async function* silent(): AsyncGenerator<Uint8Array> {
          yield* inChunks(seededBytes(600_000), 65_536)
          resolve()
          await new Promise(() => undefined)
        }
        const outcome = codeOf(store.ingest(silent()))
        await started
        await store.close()
        await store.close()
        expect(await outcome).toBe('E_CLOSED')
        const late = [
          store.stat(digest),
          store.open(digest),
          store.ingest(inChunks(bytes, 1)),
          store.verify(digest),
          store.scrub()
        ]
        expect(await Promise.all(late.map(codeOf))).toEqual(late.map(() => 'E_CLOSED'))
        expect(await codeOf(store.partial({ key: 'k', sizeBytes: 1 }))).toBe('E_CLOSED')
      }))
  })
}
