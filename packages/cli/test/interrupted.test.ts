// What a restart interrupted is listed, goes on, or is freed.
import { startFakeHub } from '@svc/testkit/fake-hub'
import { scriptedFaults } from '@svc/testkit/fake-hub-faults'
import { makeGguf } from '@svc/testkit/models'
import { expect, onTestFinished, test, vi } from 'vitest'
import { ok, QUIET_SWARM, type TestDaemon, testDaemon } from './support.ts'

vi.setConfig({ testTimeout: 120_000 })

interface Listed {
  readonly id: string
  readonly state: string
  readonly interrupted?: boolean
}
const jobs = async (daemon: TestDaemon): Promise<readonly Listed[]> =>
  JSON.parse(await ok(daemon, 'jobs', '--json')).jobs

/** A hub that holds one of two files back until it is released. */
async function slowHub() {
  const hub = await startFakeHub()
  onTestFinished(() => hub.close())
  const files = ['q4_0', 'q8_0'].map((quant, i) => ({ path: `tiny-${quant}.gguf`, content: makeGguf({ seed: i + 1 }) }))
  hub.commit({ id: 'acme/tiny', files })
  const released = Promise.withResolvers<void>()
  const hold = { kind: 'hold', until: released.promise } as const
  hub.setFaults(scriptedFaults([{ stage: 'cdn', path: 'tiny-q8_0.gguf', fault: hold }]))
  const release = (): void => {
    hub.setFaults(undefined)
    released.resolve()
  }
  const daemon = await testDaemon({ fileConfig: { swarm: { enabled: false }, hub: { endpoint: hub.endpoint } } })
  return { daemon, release, hub }
}

test('an import that a restart interrupted is listed after it, and svc resume goes on', async () => {
  const { daemon, release } = await slowHub()
  const id = await ok(daemon, 'import', 'acme/tiny', '--all', '--detach')
  await daemon.pause()
  await daemon.resume()
  expect(await jobs(daemon)).toEqual([expect.objectContaining({ id, state: 'failed', interrupted: true })])
  const listed = await daemon.svc('jobs')
  expect(listed.stdout).toMatch(new RegExp(`^${id} +import-hf +interrupted`, 'm'))
  expect(listed.stderr).toContain('svc resume')
  // also after one more restart
  await daemon.pause()
  await daemon.resume()
  expect(await jobs(daemon)).toHaveLength(1)

  release()
  expect((await ok(daemon, 'resume')).split('\n').sort()).toEqual(['acme/tiny:q4_0', 'acme/tiny:q8_0'])
  expect((await jobs(daemon)).map(({ state }) => state)).toEqual(['done'])
  await daemon.pause()
  await daemon.resume()
  expect(await jobs(daemon)).toEqual([])
  expect(await daemon.svc('resume')).toMatchObject({ code: 0, stdout: '' })
})

test('svc cancel --discard forgets an interrupted import, and frees what it has fetched', async () => {
  const { daemon, release } = await slowHub()
  const id = await ok(daemon, 'import', 'acme/tiny', '--all', '--detach')
  await daemon.pause()
  await daemon.resume()
  release()
  expect(await daemon.svc('cancel', id.slice(0, 8), '--discard')).toMatchObject({ code: 0 })
  expect((await jobs(daemon)).filter(({ id: each }) => each === id)).toEqual([])
  const { store } = JSON.parse(await ok(daemon, 'status', '--json'))
  expect(store.unfinished).toBeUndefined()
  await daemon.pause()
  await daemon.resume()
  expect((await jobs(daemon)).filter(({ interrupted }) => interrupted === true)).toEqual([])
})

test('a failed import is tried again by its id; an error says what is kept', async () => {
  const { daemon, hub } = await slowHub()
  hub.setFaults(
    scriptedFaults([{ stage: 'cdn', path: 'tiny-q8_0.gguf', fault: { kind: 'status', status: 404 }, times: 100 }])
  )
  const failed = await daemon.svc('import', 'acme/tiny', '--all')
  expect(failed.code).not.toBe(0)
  const [job] = await jobs(daemon)
  expect(job).toMatchObject({ state: 'failed' })
  hub.setFaults(undefined)
  expect((await ok(daemon, 'resume', job!.id.slice(0, 8))).split('\n')).toContain('acme/tiny:q8_0')
  const done = (await jobs(daemon))[0]!
  expect(await daemon.svc('resume', done.id)).toMatchObject({ code: 2 })
  expect(await daemon.svc('resume', 'abcdef012345')).toMatchObject({ code: 3 })
})

test('the same import twice is one job, whatever its source', async () => {
  const daemon = await testDaemon({ fileConfig: { swarm: QUIET_SWARM } })
  const magnet = `magnet:?xt=urn:btmh:1220${'a'.repeat(64)}`
  const start = (...more: string[]): Promise<string> =>
    ok(daemon, 'import', 'bt', magnet, '--pin', `sha256:${'b'.repeat(64)}`, '--detach', ...more)
  const first = await start()
  expect(await start()).toBe(first)
  expect(await start('--private')).not.toBe(first)
})
