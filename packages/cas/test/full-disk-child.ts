import { strict as assert } from 'node:assert'
import { closeSync, openSync, readdirSync, readFileSync, statfsSync, unlinkSync, writeSync } from 'node:fs'
import { CasError, openDiskStore } from '@svc/cas'
import { digestOf, inChunks, seededBytes } from '@svc/cas-testsuite'

// Run by crash.faults.ts on a small file system of its own: ingests blobs in every way, with ever more room.

const folder = process.argv[2] as string
const root = `${folder}/store`
const kept = seededBytes(5000, 1)
const small = seededBytes(100_000, 2)
const large = seededBytes(600_000, 3)
const source = `${folder}/source`
const failures: Record<string, number> = {}
let phases = 0

const sourceFd = openSync(source, 'w+')
writeSync(sourceFd, large)
const store = await openDiskStore({ root })
await store.ingest(inChunks(kept, 1000))

const ways: readonly { readonly bytes: Uint8Array; take(): Promise<unknown> }[] = [
  { bytes: small, take: () => store.ingest(inChunks(small, 30_000)) },
  { bytes: large, take: () => store.ingest(inChunks(large, 100_000)) },
  { bytes: large, take: () => store.ingest({ fd: sourceFd }) },
  {
    bytes: small,
    take: async () => {
      const partial = await store.partial({ key: 'k', sizeBytes: small.length, digest: digestOf(small) })
      try {
        await partial.write(50_000, small.subarray(50_000))
        await partial.checkpoint()
        await partial.write(0, small.subarray(0, 50_000))
        await partial.commit()
      } catch (error) {
        await partial.discard()
        throw error
      }
    }
  }
]

for (const { bytes, take } of ways) {
  for (let roomBytes = 0; ; roomBytes += 64 << 10) {
    // the ballast leaves that much.
    const ballast = openSync(`${folder}/ballast`, 'w')
    const { bavail, bsize } = statfsSync(folder)
    const length = Math.max(0, bavail * bsize - roomBytes)
    writeSync(ballast, new Uint8Array(length))
    closeSync(ballast)
    const error = await take().then(
      () => undefined,
      (thrown: unknown) => thrown
    )
    phases++
    unlinkSync(`${folder}/ballast`)
    assert.deepEqual(readdirSync(`${root}/incoming`), [])
    assert.equal(Buffer.compare(readFileSync(store.blobPath(digestOf(kept))), kept), 0)
    if (error !== undefined) {
      assert(error instanceof CasError)
      failures[error.code] = (failures[error.code] ?? 0) + 1
      assert.equal(await store.stat(digestOf(bytes)), undefined)
      continue
    }
    assert.equal((await store.verify(digestOf(bytes))).status, 'ok')
    unlinkSync(store.blobPath(digestOf(bytes)))
    break
  }
}
closeSync(sourceFd)
await store.close()
writeSync(1, JSON.stringify({ failures, phases }))
