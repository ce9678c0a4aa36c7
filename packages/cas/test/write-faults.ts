import { closeSync, openSync, readdirSync, statSync, unlinkSync, writeFileSync } from 'node:fs'
import { type BlobStore, CasError, type DiskBlobStore, openDiskStore, type PartialKey } from '@svc/cas'
import { digestOf, inChunks, seededBytes } from '@svc/cas-testsuite'
import { Faults } from '@svc/testkit/file-faults'
import { expect, test } from 'vitest'
import { openDescriptors, temporaryFolder } from './temporary-root.ts'

const small = seededBytes(5000)
const large = seededBytes(700_000)
const huge = seededBytes(9_000_000)

const key = { key: 'k', sizeBytes: large.length, digest: digestOf(large) }

/** Ways in; each puts one blob into the store. */
const ways: readonly {
  readonly name: string
  readonly bytes: Uint8Array
  readonly key?: PartialKey
  take(store: DiskBlobStore, folder: string): Promise<unknown>
}[] = [
  { name: 'a small stream', bytes: small, take: (store) => store.ingest(inChunks(small, 1000)) },
  { name: 'a large stream', bytes: large, take: (store) => store.ingest(inChunks(large, 100_000)) },
  { name: 'a small file', bytes: large, take: (store, folder) => fromFile(store, `${folder}/large`, large) },
  {
    name: 'a small file by its name',
    bytes: large,
    take: async (store, folder) => {
      const path = `${folder}/named`
      writeFileSync(path, large)
      const { dev, ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true })
      const [outcome] = await store.ingestNamed([{ path, identity: { dev, ino, size, mtimeNs, ctimeNs } }])
      if (outcome instanceof CasError) throw outcome
    }
  },
  {
    name: 'a large file by two threads',
    bytes: huge,
    take: (store, folder) => fromFile(store, `${folder}/huge`, huge)
  },
  {
    name: 'a partial that is released and resumed',
    bytes: large,
    key,
    take: async (store) => {
      const first = await store.partial(key)
      try {
        await first.write(300_000, large.subarray(300_000))
        await first.checkpoint()
      } finally {
        await first.release()
      }
      const second = await store.partial(key)
      try {
        for (const [start, end] of [
          [0, 300_000],
          [300_000, large.length]
        ] as const)
          await second.write(start, large.subarray(start, end))
        await second.commit()
      } finally {
        await second.release()
      }
    }
  }
]

async function fromFile(store: BlobStore, path: string, bytes: Uint8Array): Promise<void> {
  writeFileSync(path, bytes)
  const fd = openSync(path, 'r')
  try {
    await store.ingest({ fd })
  } finally {
    closeSync(fd)
  }
}

const faults: readonly { readonly errno: string; readonly only: string; readonly code: string }[] = [
  { errno: 'EIO', only: '', code: 'E_IO' },
  { errno: 'ENOSPC', only: 'write|open|mkdir|link|rename|fsync', code: 'E_NO_SPACE' },
  { errno: 'EDQUOT', only: 'write', code: 'E_NO_SPACE' },
  { errno: 'EMFILE', only: 'open', code: 'E_IO' },
  { errno: 'SHORT', only: 'write', code: 'none' }
]

/** Declares the tests: each operation in turn fails, or every `stride`-th one. `errnos` of {@link faults} are tried. */
export function describeWriteFaults(errnos: number, stride: number): void {
  for (const way of ways) {
    // one errno is enough where each try moves megabytes.
    for (const fault of way.bytes === huge ? faults.slice(0, 1) : faults.slice(0, errnos)) {
      test(`${fault.errno} (${fault.only || 'any operation'}) while the store takes ${way.name}`, async () => {
        const folder = await temporaryFolder()
        const plan = new Faults(fault)
        const root = `${folder.path}/store`
        const filePort = { ...plan.filePort, module: new URL('./delayed-port.ts', import.meta.url).href }
        const store = await openDiskStore({ root, filePort })
        const blob = store.blobPath(digestOf(way.bytes))
        // the threads, and the descriptors that they bring, exist before anything is counted.
        await way.take(store, folder.path)
        await store.verify(digestOf(way.bytes))
        unlinkSync(blob)
        let failures = 0
        for (let n = 1; ; n += stride) {
          const descriptors = await openDescriptors()
          plan.arm(n)
          const thrown = await way.take(store, folder.path).then(
            () => undefined,
            (error: unknown) => error
          )
          const { fired } = plan
          plan.arm(0)
          if (way.key !== undefined) await (await store.partial(way.key)).discard()
          if (thrown === undefined) {
            // also where only a cleaning step failed: what is acknowledged is there, and right.
            expect((await store.verify(digestOf(way.bytes))).status).toBe('ok')
            unlinkSync(blob)
            for (const left of readdirSync(`${root}/incoming`)) unlinkSync(`${root}/incoming/${left}`)
          } else {
            failures++
            expect(thrown).toBeInstanceOf(CasError)
            expect((thrown as CasError).code).toBe(fault.code)
            expect((thrown as CasError).cause).toBeInstanceOf(Error)
            expect(readdirSync(`${root}/incoming`)).toEqual([])
            expect(await store.stat(digestOf(way.bytes))).toBe(undefined)
          }
          expect(readdirSync(`${root}/quarantine`)).toEqual([])
          expect(await openDescriptors()).toBe(descriptors)
          if (!fired) break
        }
        expect(failures > 0).toBe(fault.code !== 'none')
        await store.close()
        await folder.dispose()
      })
    }
  }
}
