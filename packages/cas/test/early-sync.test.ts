import { writeFileSync } from 'node:fs'
import { type FilePort, loadFilePort, nodeFilePort } from '@svc/internal-files'
import { Faults } from '@svc/internal-files/faults'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { EarlySync } from '../src/early-sync.ts'
import { HashThreads } from '../src/hash-threads.ts'
import { RootGuard } from '../src/identity.ts'
import { layoutOf } from '../src/layout.ts'
import { StoreContext } from '../src/store-context.ts'
import { openDescriptors, temporaryFolder } from './temporary-root.ts'

const STEP = 64 << 20
let folder: Awaited<ReturnType<typeof temporaryFolder>>
let threads: HashThreads
let part: string

async function setUp(only: string): Promise<{ plan: Faults; early: EarlySync }> {
  const plan = new Faults({ only })
  threads = new HashThreads(folder.path, plan.filePort)
  const guard = new RootGuard(layoutOf(folder.path), '', () => true, [])
  const context = new StoreContext(layoutOf(folder.path), await loadFilePort(plan.filePort), threads, guard)
  return { plan, early: new EarlySync(context, part) }
}

beforeEach(async () => {
  folder = await temporaryFolder()
  part = `${folder.path}/part`
  writeFileSync(part, 'bytes')
})
afterEach(async () => {
  await threads.close()
  await folder.dispose()
})

test('syncs once per step, however often it is called', async () => {
  const { plan, early } = await setUp('^fdatasync')
  early.advance(STEP - 1)
  expect(plan.seen).toBe(0)
  for (let bytes = STEP; bytes < STEP + 100; bytes++) early.advance(bytes)
  await vi.waitFor(() => expect(plan.seen).toBe(1), { timeout: 20_000 })
  await early.end()
  expect(plan.seen).toBe(1)
  early.advance(STEP * 3)
  await early.end()
  expect(plan.seen).toBe(1)
})

test.each(['^open$', '^fdatasync', '^close$'])('a failed %s is final, and leaves no descriptor', async (only) => {
  const { plan, early } = await setUp(only)
  const descriptors = await openDescriptors()
  plan.arm(1)
  early.advance(STEP)
  // An end that comes first leaves the sync out; the close is its own doing.
  if (only !== '^close$') await vi.waitFor(() => expect(plan.fired).toBe(true), { timeout: 20_000 })
  await expect(early.end()).rejects.toMatchObject({
    name: 'CasError',
    code: 'E_IO',
    details: { operation: 'sync part' }
  })
  expect(plan.fired).toBe(true)
  await expect(early.end()).rejects.toMatchObject({ code: 'E_IO' })
  expect(await openDescriptors()).toBe(descriptors)
})

test('part files are synced one at a time, so that a slow disk takes one thread of the pool', async () => {
  let running = 0
  let most = 0
  let synced = 0
  const port: FilePort = {
    ...nodeFilePort,
    fdatasync: async (fd) => {
      most = Math.max(most, ++running)
      await nodeFilePort.fdatasync(fd)
      running--
      synced++
    }
  }
  threads = new HashThreads(folder.path, undefined)
  const guard = new RootGuard(layoutOf(folder.path), '', () => true, [])
  const context = new StoreContext(layoutOf(folder.path), port, threads, guard)
  const all = Array.from({ length: 8 }, () => new EarlySync(context, part))
  for (const early of all) early.advance(STEP)
  await vi.waitFor(() => expect(synced).toBe(8), { timeout: 20_000 })
  await Promise.all(all.map((early) => early.end()))
  expect(most).toBe(1)
})

test('a sync that waits for its turn is left out once its part is ended', async () => {
  let opened = 0
  let synced = 0
  let letGo: (() => void) | undefined
  const port: FilePort = {
    ...nodeFilePort,
    open: async (...how) => {
      const fd = await nodeFilePort.open(...how)
      opened++
      return fd
    },
    fdatasync: async () => {
      synced++
      await new Promise<void>((resolve) => (letGo = resolve))
    }
  }
  threads = new HashThreads(folder.path, undefined)
  const guard = new RootGuard(layoutOf(folder.path), '', () => true, [])
  const context = new StoreContext(layoutOf(folder.path), port, threads, guard)
  const [first, second] = [new EarlySync(context, part), new EarlySync(context, part)]
  first.advance(STEP)
  await vi.waitFor(() => expect(synced).toBe(1), { timeout: 20_000 })
  second.advance(STEP)
  await vi.waitFor(() => expect(opened).toBe(2), { timeout: 20_000 })
  await new Promise((resolve) => setImmediate(resolve))
  const ended = second.end()
  letGo!()
  await ended
  await first.end()
  expect(synced).toBe(1)
})
