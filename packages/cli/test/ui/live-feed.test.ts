import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Job, Status } from '@svc/client'
import { makeGguf } from '@svc/testkit/models'
import { VirtualClock } from '@svc/testkit/virtual-clock'
import { expect, it } from 'vitest'
import { testDaemon } from '../support.ts'
import { Listener, openBridge } from './support.ts'

/** A page of its own, which lets time pass while it waits. */
async function opened(socketPath: string) {
  const clock = new VirtualClock()
  const page = await openBridge(socketPath, { clock })
  return { page, listen: () => new Listener(page, clock) }
}

interface DaemonEvent {
  readonly state: 'up' | 'away'
  readonly pid?: number
}
interface JobsEvent {
  readonly jobs: readonly Job[]
  readonly gone: readonly string[]
}

it('sends an open page the current state, then the changes', async () => {
  const daemon = await testDaemon()
  const { page, listen } = await opened(daemon.socketPath)
  const live = listen()
  expect(await live.next('daemon')).toEqual({ state: 'up', version: expect.any(String), pid: process.pid })
  expect((await live.next<Status>('status')).store.blobs).toBe(0)

  writeFileSync(join(daemon.folder, 'm-q8_0.gguf'), makeGguf({ seed: 1 }))
  await daemon.svc('import', 'local', 'm-q8_0.gguf', '--as', 'acme/m')
  const { jobs } = await live.next<JobsEvent>('jobs', (event) => event.jobs.some(({ state }) => state === 'done'))
  expect(jobs).toMatchObject([{ kind: 'import-local', as: 'acme/m' }])
  await live.next('models')

  // by the page, and by somebody else
  await page.fetch('v1/private', { method: 'PUT', body: { ref: 'acme/m:q8_0', private: true } })
  await live.next('models')
  await daemon.svc('rm', 'acme/m')
  await live.next('models')
})

it('sends nothing twice, and no change of models for a collection that only counts', async () => {
  const daemon = await testDaemon()
  const { page, listen } = await opened(daemon.socketPath)
  const live = listen()
  await live.next('status')
  await page.fetch('bridge/disk')
  await live.next<JobsEvent>('jobs', (event) => event.jobs.some(({ state }) => state === 'done'))
  const { id } = (await page.session.client.jobs())[0]!
  await page.session.client.gc({ dryRun: true, graceSeconds: 1 })
  const { jobs } = await live.next<JobsEvent>('jobs', (event) => event.jobs.some((job) => job.state === 'done'))
  expect(jobs.map((job) => job.id)).not.toContain(id)
  expect(live.names).not.toContain('models')
})

it('reports that the daemon went away and came back, then sends everything again', async () => {
  const daemon = await testDaemon()
  writeFileSync(join(daemon.folder, 'm-q8_0.gguf'), makeGguf({ seed: 1 }))
  await daemon.svc('import', 'local', 'm-q8_0.gguf', '--as', 'acme/m')
  const { listen } = await opened(daemon.socketPath)
  const live = listen()
  await live.next('status')
  await daemon.pause()
  expect(await live.next<DaemonEvent>('daemon')).toMatchObject({ state: 'away', message: expect.any(String) })
  // a page that opens now hears of it
  expect(await listen().next('daemon')).toMatchObject({ state: 'away' })
  await daemon.resume()
  // the reason why it was away may have changed before
  await live.next<DaemonEvent>('daemon', ({ state }) => state === 'up')
  await live.next('status')
})

it('sends a second page everything from the start, and ends with the bridge', async () => {
  const daemon = await testDaemon()
  writeFileSync(join(daemon.folder, 'm-q8_0.gguf'), makeGguf({ seed: 1 }))
  await daemon.svc('import', 'local', 'm-q8_0.gguf', '--as', 'acme/m')
  const { page, listen } = await opened(daemon.socketPath)
  const first = listen()
  await first.next<JobsEvent>('jobs')
  const second = listen()
  expect(await second.next<DaemonEvent>('daemon')).toMatchObject({ state: 'up' })
  expect((await second.next<JobsEvent>('jobs')).jobs).toHaveLength(1)
  await page.bridge.close()
  await Promise.all([first.ended, second.ended])
})

it('asks the daemon nothing while no page is open, and serves sixteen pages', async () => {
  const daemon = await testDaemon()
  const { page, listen } = await opened(daemon.socketPath)
  const pages = Array.from({ length: 16 }, () => listen())
  await Promise.all(pages.map((each) => each.next('status')))
  expect((await page.fetch('events')).status).toBe(503)
  for (const each of pages) each.leave()
  await Promise.all(pages.map((each) => each.ended))
  // there is room again, and the new page hears of changes in between
  await daemon.svc('gc')
  const late = listen()
  await late.next<JobsEvent>('jobs', ({ jobs }) => jobs.length === 1)
})
