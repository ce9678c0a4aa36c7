import * as fs from 'node:fs'
import { type DiskBlobStore, openDiskStore } from '@svc/cas'
import { codeOf, digestOf, inChunks, seededBytes } from '@svc/cas-testsuite'
import { Faults } from '@svc/testkit/file-faults'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { temporaryFolder } from './temporary-root.ts'

let folder: Awaited<ReturnType<typeof temporaryFolder>>
let root: string
let store: DiskBlobStore
const open = async (plan?: Faults): Promise<DiskBlobStore> =>
  (store = await openDiskStore({ root, hashThreads: 2, ...(plan !== undefined && { filePort: plan.filePort }) }))

beforeEach(async () => {
  folder = await temporaryFolder()
  root = `${folder.path}/store`
})
afterEach(async () => {
  await store.close()
  await folder.dispose()
})

/** Every way by which bytes become a blob. */
const ways: readonly {
  readonly name: string
  readonly sizeBytes: number
  take(bytes: Uint8Array): Promise<{ existed: boolean }>
}[] = [
  { name: 'a short stream', sizeBytes: 1000, take: (bytes) => store.ingest(inChunks(bytes, 99)) },
  { name: 'a stream', sizeBytes: 600_000, take: (bytes) => store.ingest(inChunks(bytes, 70_000)) },
  { name: 'a long stream', sizeBytes: 5_000_000, take: (bytes) => store.ingest(inChunks(bytes, 1 << 20)) },
  { name: 'a file', sizeBytes: 600_000, take: fromFile },
  { name: 'a large file', sizeBytes: 9_000_000, take: fromFile },
  {
    name: 'a partial',
    sizeBytes: 5_000_000,
    take: async (bytes) => {
      const partial = await store.partial({ key: 'k', sizeBytes: bytes.length, digest: digestOf(bytes) })
      await partial.write(0, bytes)
      return partial.commit()
    }
  }
]

async function fromFile(bytes: Uint8Array): Promise<{ existed: boolean }> {
  fs.writeFileSync(`${folder.path}/source`, bytes)
  const fd = fs.openSync(`${folder.path}/source`, 'r')
  try {
    return await store.ingest({ fd })
  } finally {
    fs.closeSync(fd)
  }
}

/** One bit of a blob's file, the size as it was. */
function corrupt(bytes: Uint8Array): Uint8Array {
  const path = store.blobPath(digestOf(bytes))
  const wrong = bytes.slice()
  wrong[777] = wrong[777]! ^ 4
  fs.chmodSync(path, 0o600)
  fs.writeFileSync(path, wrong)
  fs.chmodSync(path, 0o444)
  return wrong
}

describe('bytes that are ingested again', () => {
  for (const { name, sizeBytes, take } of ways) {
    test(`as ${name}: a corrupt blob is moved to quarantine and replaced`, async () => {
      await open()
      const bytes = seededBytes(sizeBytes)
      expect((await take(bytes)).existed).toBe(false)
      const { ino } = fs.statSync(store.blobPath(digestOf(bytes)))
      expect((await take(bytes)).existed).toBe(true)
      expect(fs.statSync(store.blobPath(digestOf(bytes))).ino).toBe(ino)
      const wrong = corrupt(bytes)
      expect((await take(bytes)).existed).toBe(false)
      expect((await store.verify(digestOf(bytes))).status).toBe('ok')
      const aside = fs.readdirSync(`${root}/quarantine`)
      expect(aside.length).toBe(1)
      expect(Buffer.compare(fs.readFileSync(`${root}/quarantine/${aside[0]}`), wrong)).toBe(0)
      expect(fs.readdirSync(`${root}/incoming`)).toEqual([])
    })
  }

  test('an abort during the comparison keeps the old blob, and nothing of the new bytes', async () => {
    await open()
    const bytes = seededBytes(40_000_000)
    await store.ingest(inChunks(bytes, 1 << 20))
    const stop = new AbortController()
    const stopSoon = (): void => void setImmediate(() => stop.abort())
    const again = store.ingest(inChunks(bytes, 1 << 20), { signal: stop.signal, accept: stopSoon })
    expect(await codeOf(again)).toBe('E_ABORTED')
    expect(fs.readdirSync(`${root}/incoming`)).toEqual([])
    expect(fs.readdirSync(`${root}/quarantine`)).toEqual([])
    expect((await store.verify(digestOf(bytes))).status).toBe('ok')
  })
})

describe('a blob exists once its folder is durable, and not before', () => {
  const bytes = seededBytes(5000)
  const digest = digestOf(bytes)
  /** Whether a promise has settled after everything that is ready had its turn. */
  const settled = async (promise: Promise<unknown>): Promise<boolean> => {
    let done = false
    void promise.catch(() => undefined).finally(() => (done = true))
    for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve))
    return done
  }

  test('a stat during that sync waits, and never reports a blob whose name is removed again', async () => {
    const plan = new Faults({ only: '^fsyncSync$' })
    await open(plan)
    // the first sync is that of the file, the second that of its folder.
    plan.arm(2, { held: true })
    const first = codeOf(store.ingest(inChunks(bytes, 999)))
    await vi.waitFor(() => expect(plan.fired).toBe(true), { timeout: 100_000 })
    expect(fs.existsSync(store.blobPath(digest))).toBe(true)
    const asked = store.stat(digest)
    const second = store.ingest(inChunks(bytes, 999))
    // released in any case: the store cannot be closed before.
    const waited = [await settled(asked), await settled(second)]
    plan.release()
    expect(waited).toEqual([false, false])
    expect(await first).toBe('E_IO')
    expect(await asked).toBe(undefined)
    expect((await second).existed).toBe(false)
    expect(await store.stat(digest)).toEqual({ digest, sizeBytes: bytes.length })
    expect((await store.verify(digest)).status).toBe('ok')
  })

  test('a name that cannot be removed counts as missing, and the next ingest replaces it', async () => {
    const plan = new Faults({ only: '^(fsyncSync|unlinkSync)$' })
    await open(plan)
    plan.arm(2, { failures: 2 })
    expect(await codeOf(store.ingest(inChunks(bytes, 999)))).toBe('E_IO')
    expect(fs.existsSync(store.blobPath(digest))).toBe(true)
    expect(await store.stat(digest)).toBe(undefined)
    plan.arm(0)
    expect((await store.ingest(inChunks(bytes, 999))).existed).toBe(false)
    expect(await store.stat(digest)).toEqual({ digest, sizeBytes: bytes.length })
    expect((await store.ingest(inChunks(bytes, 999))).existed).toBe(true)
  })

  test('the next start makes the name durable, as after a crash', async () => {
    const plan = new Faults({ only: '^(fsyncSync|unlinkSync)$' })
    await open(plan)
    plan.arm(2, { failures: 2 })
    expect(await codeOf(store.ingest(inChunks(bytes, 999)))).toBe('E_IO')
    plan.arm(0)
    await store.close()
    expect(fs.readFileSync(`${root}/lock`, 'latin1')).not.toBe('')
    await open(plan)
    expect(await store.stat(digest)).toEqual({ digest, sizeBytes: bytes.length })
    await store.close()
    expect(fs.readFileSync(`${root}/lock`, 'latin1')).toBe('')
  })
})
