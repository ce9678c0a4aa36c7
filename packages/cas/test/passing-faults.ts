import fs from 'node:fs'
import { CasError, type DiskBlobStore, openDiskStore } from '@svc/cas'
import { digestOf, inChunks, seededBytes } from '@svc/cas-testsuite'
import { Faults } from '@svc/testkit/file-faults'
import { expect, test } from 'vitest'
import { temporaryFolder } from './temporary-root.ts'

// A transient fault says nothing about a blob. It is corrupt only if two whole reads of it agree on other bytes.

const SIZES = [
  { name: 'small', sizeBytes: 5000 },
  { name: 'large', sizeBytes: 5_000_000 }
]

/** Everything that reads a blob to judge it. */
const judges: readonly { readonly name: string; judge(store: DiskBlobStore, bytes: Uint8Array): Promise<unknown> }[] = [
  { name: 'verify', judge: (store, bytes) => store.verify(digestOf(bytes)) },
  { name: 'scrub', judge: (store) => store.scrub() },
  { name: 'ingest of the same stream', judge: (store, bytes) => store.ingest(inChunks(bytes, 1 << 20)) },
  {
    name: 'ingest of the same file',
    judge: async (store, bytes) => {
      const path = `${store.root}/../file`
      fs.writeFileSync(path, bytes)
      const fd = fs.openSync(path, 'r')
      try {
        await store.ingest({ fd }, {})
      } finally {
        fs.closeSync(fd)
      }
    }
  }
]

/** Declares the tests: each of `errnos` strikes once, at every `stride`-th operation, for blobs of these sizes. */
export function describePassingFaults(errnos: readonly string[], stride: number, sizes = SIZES): void {
  for (const { name: size, sizeBytes } of sizes) {
    const bytes = seededBytes(sizeBytes)
    const digest = digestOf(bytes)
    for (const { name, judge } of judges) {
      test(`${name} of a ${size} blob: a transient fault at any operation quarantines no intact blob`, async () => {
        // the listings of 256 folders judge nothing
        const only = name === 'scrub' ? '^(?!readdir)' : ''
        for (const errno of errnos) {
          const folder = await temporaryFolder()
          const plan = new Faults({ errno, only })
          const store = await openDiskStore({ root: `${folder.path}/store`, filePort: plan.filePort })
          await store.ingest(inChunks(bytes, 1 << 20))
          await judge(store, bytes)
          for (let n = 1; ; n += n < 8 ? 1 : stride) {
            plan.arm(n)
            const thrown = await judge(store, bytes).then(
              () => undefined,
              (error: unknown) => error
            )
            const { fired } = plan
            plan.arm(0)
            const left = {
              aside: fs.readdirSync(`${store.root}/quarantine`),
              bytes: fs.readFileSync(store.blobPath(digest))
            }
            expect([errno, n, left.aside]).toEqual([errno, n, []])
            expect(Buffer.compare(left.bytes, bytes)).toBe(0)
            if (thrown !== undefined) expect(thrown).toBeInstanceOf(CasError)
            if (thrown !== undefined)
              expect((thrown as CasError).code).toMatch(/^E_(IO|SIZE_MISMATCH|DIGEST_MISMATCH)$/)
            // whatever the fault left does not hinder the next pass.
            await judge(store, bytes)
            if (!fired) break
          }
          await store.close()
          await folder.dispose()
        }
      })

      test(`${name} of a ${size} blob: a flipped bit always quarantines it, after any transient fault`, async () => {
        const folder = await temporaryFolder()
        const plan = new Faults({})
        const store = await openDiskStore({ root: `${folder.path}/store`, filePort: plan.filePort })
        for (const at of stride === 1 ? [0, sizeBytes >> 1, sizeBytes - 1] : [sizeBytes >> 1]) {
          await store.ingest(inChunks(bytes, 1 << 20))
          const rotten = Buffer.from(bytes)
          rotten[at]! ^= 1 << (at % 8)
          const path = store.blobPath(digest)
          fs.chmodSync(path, 0o600)
          fs.writeFileSync(path, rotten)
          plan.arm(1)
          await judge(store, bytes).catch(() => undefined)
          plan.arm(0)
          await judge(store, bytes)
          const aside = fs.readdirSync(`${store.root}/quarantine`)
          expect(aside).toHaveLength(1)
          expect(Buffer.compare(fs.readFileSync(`${store.root}/quarantine/${aside[0]}`), rotten)).toBe(0)
          fs.unlinkSync(`${store.root}/quarantine/${aside[0]}`)
        }
        await store.close()
        await folder.dispose()
      })
    }
  }
}
