import type { BlobStore } from '@svc/cas'
import type { Sha256Digest } from '@svc/ref'
import { type ContractApi, codeOf, digestOf, inChunks, seededBytes } from './material.ts'

/** The store contract's section on leases. */
export function describeLeases(
  name: string,
  withStore: (body: (store: BlobStore) => Promise<void>) => Promise<void>,
  { describe, test, expect }: ContractApi
): void {
  const take = async (store: BlobStore, seed: number): Promise<Sha256Digest> =>
    (await store.ingest(inChunks(seededBytes(1000, seed), 500))).digest
  const isRemoved = async (store: BlobStore, digest: Sha256Digest): Promise<boolean> =>
    (await store.remove(digest)) !== undefined

  describe(`${name}: leases`, () => {
    test('keep the blobs that they name, each as long as one of them is open', () =>
      withStore(async (store) => {
        const [one, other] = [await take(store, 1), await take(store, 2)]
        const [first, second] = [store.lease([one]), store.lease([one])]
        expect([store.isLeased(one), store.isLeased(other)]).toEqual([true, false])
        first.release()
        first.release()
        expect([await isRemoved(store, one), await isRemoved(store, other)]).toEqual([false, true])
        second.keep(other)
        second.release()
        second.keep(one)
        expect([store.isLeased(other), await isRemoved(store, one)]).toEqual([false, true])
      }))

    test('without names keep every blob that is looked up, opened, verified or ingested meanwhile', () =>
      withStore(async (store) => {
        const [before, looked, read, verified, named] = await Promise.all([1, 2, 3, 4, 5].map((n) => take(store, n)))
        const absent = digestOf(seededBytes(9))
        const lease = store.lease()
        await store.stat(looked!)
        await store.stat(absent)
        await (await store.open(read!)).close()
        await store.verify(verified!)
        lease.keep(named!)
        const [again, fresh] = [await take(store, 1), await take(store, 6)]
        expect(again).toBe(before)
        const partial = await store.partial({ key: 'k', sizeBytes: 10 })
        await partial.write(0, seededBytes(10))
        const { digest: arrived } = await partial.commit()
        for (const digest of [before, looked, read, verified, named, fresh, arrived])
          expect(await isRemoved(store, digest!)).toBe(false)
        expect(store.isLeased(absent)).toBe(true)
        lease.release()
        for (const digest of [before, looked, read, verified, named, fresh, arrived])
          expect(await isRemoved(store, digest!)).toBe(true)
        expect(store.isLeased(absent)).toBe(false)
      }))

    test('keep a blob that is not addressable yet', () =>
      withStore(async (store) => {
        const lease = store.lease()
        const accept = ({ digest }: { readonly digest: Sha256Digest }): void =>
          void expect(store.isLeased(digest)).toBe(true)
        await store.ingest(inChunks(seededBytes(1000), 500), { accept })
        lease.release()
      }))

    test('end one by one: a blob that only a later lease covers stays until that lease ends', () =>
      withStore(async (store) => {
        const digest = await take(store, 1)
        const first = store.lease()
        const second = store.lease()
        await store.stat(digest)
        first.release()
        expect(await isRemoved(store, digest)).toBe(false)
        const third = store.lease()
        second.release()
        expect(await isRemoved(store, digest)).toBe(true)
        third.release()
      }))
  })

  describe(`${name}: partial blobs under way`, () => {
    test('are listed with or without a holder, and can be aborted', () =>
      withStore(async (store) => {
        expect(store.listPartials()).toEqual([])
        expect(store.partialStatus('a')).toBe(undefined)
        const [a, b] = [
          await store.partial({ key: 'a', sizeBytes: 10 }),
          await store.partial({ key: 'b', sizeBytes: 20 })
        ]
        await a.write(2, seededBytes(3))
        await b.write(0, seededBytes(5))
        await b.release()
        const status = [
          { key: 'a', sizeBytes: 10, writtenBytes: 3, isHeld: true },
          { key: 'b', sizeBytes: 20, writtenBytes: 5, isHeld: false }
        ]
        expect(store.listPartials()).toEqual(status)
        expect(['a', 'b'].map((key) => store.partialStatus(key))).toEqual(status)
        for (const key of ['a', 'b', 'c']) await store.abortPartial(key)
        expect(store.listPartials()).toEqual([])
        expect(await codeOf(a.write(0, seededBytes(1)))).toBe('E_CLOSED')
        const again = await store.partial({ key: 'b', sizeBytes: 20 })
        expect(again.ranges()).toEqual([])
        await again.discard()
      }))
  })
}
