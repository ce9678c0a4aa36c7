import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Job, Status } from '@svc/client'
import { type Clock, systemClock } from '@svc/internal-clock'
import { makeGguf } from '@svc/testkit/models'
import { expect, it } from 'vitest'
import { testDaemon } from '../support.ts'
import { Listener, openBridge } from './support.ts'

/** A second passes in twenty milliseconds. */
const FAST: Clock = {
  ...systemClock,
  monotonic: () => systemClock.monotonic() * 50,
  sleep: (delayMs, signal) => systemClock.sleep(delayMs / 50, signal)
}

interface DaemonEvent {
  readonly state: 'up' | 'away'
  readonly pid?: number
}
interface JobsEvent {
  readonly jobs: readonly Job[]
  readonly gone: readonly string[]
}

it('tells an open page what is, then what changes', async () => {
  const daemon = await testDaemon()
  const page = await openBridge(daemon.socketPath, { clock: FAST })
  const live = new Listener(page)
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

it('tells nothing twice that stays the same, and of a collection that only counts no change of models', async () => {
  const daemon = await testDaemon()
  const page = await openBridge(daemon.socketPath, { clock: FAST })
  const live = new Listener(page)
  await live.next('status')
  await page.fetch('bridge/disk')
  await live.next<JobsEvent>('jobs', (event) => event.jobs.some(({ state }) => state === 'done'))
  const { id } = (await page.session.client.jobs())[0]!
  await page.session.client.gc({ dryRun: true, graceSeconds: 1 })
  const { jobs } = await live.next<JobsEvent>('jobs', (event) => event.jobs.some((job) => job.state === 'done'))
  expect(jobs.map((job) => job.id)).not.toContain(id)
  expect(live.names).not.toContain('models')
})

it('tells that the daemon goes away and comes back, with everything anew', async () => {
  const daemon = await testDaemon()
  writeFileSync(join(daemon.folder, 'm-q8_0.gguf'), makeGguf({ seed: 1 }))
  await daemon.svc('import', 'local', 'm-q8_0.gguf', '--as', 'acme/m')
  const page = await openBridge(daemon.socketPath, { clock: FAST })
  const live = new Listener(page)
  await live.next('status')
  await daemon.pause()
  expect(await live.next<DaemonEvent>('daemon')).toMatchObject({ state: 'away', message: expect.any(String) })
  // a page that comes now hears that
  expect(await new Listener(page).next('daemon')).toMatchObject({ state: 'away' })
  await daemon.resume()
  expect(await live.next<DaemonEvent>('daemon')).toMatchObject({ state: 'up' })
  await live.next('status')
})

it('tells a second page everything from the start, and ends with the bridge', async () => {
  const daemon = await testDaemon()
  writeFileSync(join(daemon.folder, 'm-q8_0.gguf'), makeGguf({ seed: 1 }))
  await daemon.svc('import', 'local', 'm-q8_0.gguf', '--as', 'acme/m')
  const page = await openBridge(daemon.socketPath, { clock: FAST })
  const [first] = [new Listener(page)]
  await first.next<JobsEvent>('jobs')
  const second = new Listener(page)
  expect(await second.next<DaemonEvent>('daemon')).toMatchObject({ state: 'up' })
  expect((await second.next<JobsEvent>('jobs')).jobs).toHaveLength(1)
  await page.bridge.close()
  await Promise.all([first.ended, second.ended])
})

it('asks the daemon nothing while no page is open, and takes sixteen', async () => {
  const daemon = await testDaemon()
  const page = await openBridge(daemon.socketPath, { clock: FAST })
  const pages = Array.from({ length: 16 }, () => new Listener(page))
  await Promise.all(pages.map((each) => each.next('status')))
  expect((await page.fetch('events')).status).toBe(503)
  for (const each of pages) each.leave()
  await Promise.all(pages.map((each) => each.ended))
  // there is room again, and what changed meanwhile is told
  await daemon.svc('gc')
  const late = new Listener(page)
  expect((await late.next<JobsEvent>('jobs')).jobs).toHaveLength(1)
})
