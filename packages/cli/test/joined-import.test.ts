// A second identical import is the first one: one job, whose progress both see.
import { startFakeHub } from '@svc/testkit/fake-hub'
import { scriptedFaults } from '@svc/testkit/fake-hub-faults'
import { makeGguf } from '@svc/testkit/models'
import { expect, onTestFinished, test } from 'vitest'
import { ok, testDaemon } from './support.ts'

test('a second identical import joins the first; a different one does not', async () => {
  const hub = await startFakeHub()
  onTestFinished(() => hub.close())
  const files = ['q4_0', 'q8_0'].map((quant, i) => ({ path: `tiny-${quant}.gguf`, content: makeGguf({ seed: i + 1 }) }))
  hub.commit({ id: 'acme/tiny', files })
  const released = Promise.withResolvers<void>()
  hub.setFaults(
    scriptedFaults([{ stage: 'cdn', path: 'tiny-q4_0.gguf', fault: { kind: 'hold', until: released.promise } }])
  )
  const daemon = await testDaemon({ fileConfig: { swarm: { enabled: false }, hub: { endpoint: hub.endpoint } } })
  const detached = async (...args: string[]) => ok(daemon, 'import', 'acme/tiny:q4_0', '--detach', ...args)
  const first = await detached()
  expect(await detached()).toBe(first)
  const other = await detached('--private')
  expect(other).not.toBe(first)
  const followed = daemon.svc('import', 'acme/tiny:q4_0')
  hub.setFaults(undefined)
  released.resolve()
  expect(await followed).toMatchObject({ code: 0, stdout: 'acme/tiny:q4_0\n' })
  await ok(daemon, 'jobs', other, '--follow')
  // what has ended is not joined
  expect(await detached()).not.toBe(first)
  const { jobs } = JSON.parse(await ok(daemon, 'jobs', '--json'))
  expect(jobs.filter(({ kind }: { readonly kind: string }) => kind === 'import-hf')).toHaveLength(3)
})
