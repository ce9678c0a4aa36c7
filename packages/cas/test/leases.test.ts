import { join } from 'node:path'
import { openDiskStore } from '@svc/cas'
import { inChunks, seededBytes } from '@svc/cas-testsuite'
import { Faults } from '@svc/testkit/file-faults'
import { expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from './temporary-root.ts'

test('a blob loses its lease even if its reader cannot be closed', async () => {
  const folder = await temporaryFolder()
  const plan = new Faults({ only: '^close(Sync)?$' })
  const store = await openDiskStore({ root: join(folder.path, 'store'), filePort: plan.filePort })
  onTestFinished(async () => {
    await store.close()
    await folder.dispose()
  })
  const { digest } = await store.ingest(inChunks(seededBytes(10), 10))
  const reader = await store.open(digest)
  expect(store.isLeased(digest)).toBe(true)
  plan.arm(1)
  await expect(reader.close()).rejects.toMatchObject({ code: 'E_IO' })
  expect(plan.fired).toBe(true)
  expect(store.isLeased(digest)).toBe(false)
})

test('a removal that waits for its turn sees a lease acquired meanwhile', async () => {
  const folder = await temporaryFolder()
  const store = await openDiskStore({ root: join(folder.path, 'store') })
  onTestFinished(async () => {
    await store.close()
    await folder.dispose()
  })
  const { digest } = await store.ingest(inChunks(seededBytes(10), 10))
  const removal = store.remove(digest)
  const lease = store.lease([digest])
  expect(await removal).toBe(undefined)
  expect(await store.stat(digest)).toBeDefined()
  lease.release()
  expect(await store.remove(digest)).toBeDefined()
})
