import { readFileSync } from 'node:fs'
import { type BlobStore, CasError, type CasErrorCode, openDiskStore } from '@svc/cas'
import { collect, digestOf, inChunks, seededBytes } from '@svc/cas-testsuite'
import { Faults } from '@svc/testkit/file-faults'
import { expect, test } from 'vitest'
import { openDescriptors, temporaryFolder } from './temporary-root.ts'

const small = seededBytes(5000, 1)
const large = seededBytes(300_000, 2)
const partialBytes = seededBytes(100_000, 3)
const digests = [digestOf(small), digestOf(large)].sort()
const key = { key: 'k', sizeBytes: partialBytes.length, digest: digestOf(partialBytes) }

/** Operations that only look: whatever fails, the blobs and the partial stay as they are. */
const looks: readonly { readonly name: string; look(store: BlobStore): Promise<unknown> }[] = [
  { name: 'stat', look: async (store) => expect(await store.stat(digestOf(small))).toBeDefined() },
  {
    name: 'list',
    look: async (store) => expect((await collect(store.list())).map(({ digest }) => digest)).toEqual(digests)
  },
  {
    name: 'open and read',
    look: async (store) => {
      const chunks = await collect((await store.open(digestOf(large))).stream())
      expect(Buffer.compare(Buffer.concat(chunks), large)).toBe(0)
    }
  },
  { name: 'verify', look: async (store) => expect((await store.verify(digestOf(large))).status).toBe('ok') },
  { name: 'scrub', look: async (store) => expect(await store.scrub()).toEqual({ checked: 2, mismatched: [] }) },
  {
    name: 'resume a partial, read, release',
    look: async (store) => {
      const partial = await store.partial(key)
      try {
        // a sync that failed in the round before was final: that partial is gone, and this one begins anew.
        if (partial.ranges().length === 0) await partial.write(0, partialBytes.subarray(0, 50_000))
        const target = new Uint8Array(50_000)
        await partial.read(target, 0)
        expect(Buffer.compare(target, partialBytes.subarray(0, 50_000))).toBe(0)
      } finally {
        await partial.release()
      }
    }
  }
]

async function fill(store: BlobStore): Promise<void> {
  await store.ingest(inChunks(small, 1000))
  await store.ingest(inChunks(large, 100_000))
  const partial = await store.partial(key)
  await partial.write(0, partialBytes.subarray(0, 50_000))
  await partial.checkpoint()
  await partial.release()
}

async function expectUntouched(root: string, store: BlobStore): Promise<void> {
  for (const bytes of [small, large]) {
    const path = `${root}/blobs/sha256/${digestOf(bytes).slice(7, 9)}/${digestOf(bytes).slice(9)}`
    expect(Buffer.compare(readFileSync(path), bytes)).toBe(0)
  }
  expect(await collect(store.list())).toHaveLength(2)
}

function expectFailure(thrown: unknown): void {
  expect(thrown).toBeInstanceOf(CasError)
  expect((thrown as CasError).code).toBe('E_IO' satisfies CasErrorCode)
  expect((thrown as CasError).cause).toBeInstanceOf(Error)
}

/** Declares the tests: the first operations, then every `jump`-th one, fail while a store is read, checked or opened (hundreds: 256 folders). */
export function describeReadFaults(jump: number): void {
  for (const { name, look } of looks) {
    test(`EIO while the store serves: ${name}`, async () => {
      const folder = await temporaryFolder()
      const root = `${folder.path}/store`
      const plan = new Faults({})
      const store = await openDiskStore({ root, filePort: plan.filePort })
      await fill(store)
      await look(store)
      for (let n = 1; ; n += n < 6 ? 1 : jump) {
        const descriptors = await openDescriptors()
        plan.arm(n)
        const thrown = await look(store).then(
          () => undefined,
          (error: unknown) => error
        )
        const { fired } = plan
        plan.arm(0)
        if (thrown !== undefined) expectFailure(thrown)
        await expectUntouched(root, store)
        expect(await openDescriptors()).toBe(descriptors)
        if (!fired) {
          expect(thrown).toBe(undefined)
          break
        }
      }
      await store.close()
      await folder.dispose()
    })
  }

  test('EIO while a store is opened: it is reported, the root is released, and the store opens unchanged', async () => {
    const folder = await temporaryFolder()
    const root = `${folder.path}/store`
    const first = await openDiskStore({ root })
    await fill(first)
    await first.close()
    let failures = 0
    for (let n = 1; ; n += n < 6 ? 1 : jump) {
      const plan = new Faults({})
      const descriptors = await openDescriptors()
      plan.arm(n)
      const opened = await openDiskStore({ root, filePort: plan.filePort }).catch((error: unknown) => {
        failures++
        expectFailure(error)
      })
      const { fired } = plan
      plan.arm(0)
      await opened?.close()
      expect(await openDescriptors()).toBe(descriptors)
      const again = await openDiskStore({ root })
      await expectUntouched(root, again)
      await again.close()
      if (!fired) break
    }
    expect(failures).toBeGreaterThan(0)
    await folder.dispose()
  })
}
