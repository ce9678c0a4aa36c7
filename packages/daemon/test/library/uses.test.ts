import { createHash } from 'node:crypto'
import { openDiskStore } from '@svc/cas'
import { Faults } from '@svc/internal-files/faults'
import { digestFromBytes } from '@svc/ref'
import { expect, onTestFinished, test } from 'vitest'
import { oneChunk } from '../../src/library/small-blob.ts'
import { Uses } from '../../src/library/uses.ts'
import { temporaryFolder } from '../support/daemon.ts'

test('a blob whose reader could not be closed is in use no longer: the next collection takes it', async () => {
  const plan = new Faults({ only: '^close(Sync)?$' })
  const store = await openDiskStore({ root: temporaryFolder(), filePort: plan.filePort })
  onTestFinished(() => store.close())
  const bytes = Buffer.from('a document')
  const digest = digestFromBytes(createHash('sha256').update(bytes).digest())
  const uses = new Uses()
  const watched = uses.watching(store)
  await watched.ingest(oneChunk(bytes), { digest, sizeBytes: bytes.length })
  const reader = await watched.open(digest)
  expect(uses.has(digest)).toBe(true)
  plan.arm(1)
  await expect(reader.close()).rejects.toMatchObject({ code: 'E_IO' })
  expect(plan.fired).toBe(true)
  expect(uses.has(digest)).toBe(false)
})
