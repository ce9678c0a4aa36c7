// The question which quants to import: its numbers, its default, and what it says of what is here.
import { type FakeHub, startFakeHub } from '@svc/testkit/fake-hub'
import { makeGguf } from '@svc/testkit/models'
import { expect, onTestFinished, test } from 'vitest'
import { ok, type TestDaemon, testDaemon, typing } from './support.ts'

const REPO = 'acme/tiny'

async function asking(): Promise<{ readonly daemon: TestDaemon; readonly hub: FakeHub }> {
  const hub = await startFakeHub()
  onTestFinished(() => hub.close())
  const quants = ['q2_k', 'q4_k_m', 'q8_0']
  const tensors = (n: number) => ({ seed: n, metadata: { padding: 'x'.repeat(1000 * n) } })
  hub.commit({
    id: REPO,
    files: quants.map((quant, i) => ({ path: `tiny-${quant}.gguf`, content: makeGguf(tensors(i + 1)) }))
  })
  return {
    hub,
    daemon: await testDaemon({ fileConfig: { swarm: { enabled: false }, hub: { endpoint: hub.endpoint } } })
  }
}

test('the question takes numbers and names, and Enter for what it recommends', async () => {
  const { daemon } = await asking()
  const answered = (answer: string) => daemon.svcWith(['import', REPO], { columns: 100, stdin: typing(answer) })
  const numbered = await answered('2, q2')
  expect(numbered).toMatchObject({ code: 0, stdout: `${REPO}:q2_k\n${REPO}:q4_k_m\n` })
  expect(numbered.stderr).toMatch(/^ +1 +q2_k .*\n +2 +q4_k_m .*\n +3 +q8_0 /m)
  const recommended = /Enter for (\S+)\)/.exec(numbered.stderr)![1]!
  expect(numbered.stderr).toContain(`is ${recommended}: `)
  const entered = await answered('')
  expect(entered).toMatchObject({ code: 0, stdout: `${REPO}:${recommended}\n` })
  expect((await daemon.svcWith(['import', REPO], { columns: 100, stdin: typing('9', '') })).code).toBe(0)
})

test('importing what is here says so', async () => {
  const { daemon } = await asking()
  const imported = async () => (await daemon.svc('import', `${REPO}:q8_0`)).stderr
  expect(await imported()).not.toContain('here already')
  expect(await imported()).toContain('here already')
  await ok(daemon, 'rm', REPO)
  expect(await imported()).not.toContain('here already')
})
