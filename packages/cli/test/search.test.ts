// `svc search` against the real daemon and a hub on 127.0.0.1.

import { type FakeHub, startFakeHub } from '@svc/testkit/fake-hub'
import { makeGguf } from '@svc/testkit/models'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { laterUndo, type TestDaemon, testDaemon } from './support.ts'

const undo = laterUndo()
let hub: FakeHub
let daemon: TestDaemon

beforeAll(async () => {
  const gguf = (seed: number) => [{ path: 'm-q8_0.gguf', content: makeGguf({ seed }) }]
  hub = await startFakeHub({
    repos: [
      { id: 'Acme/One', files: gguf(1), downloads: 1_234_567, parameters: 7_600_000_000, tags: ['license:mit'] },
      { id: 'Acme/Two', files: gguf(2), gated: 'auto', downloads: 20 },
      { id: 'Acme/Weights', files: [{ path: 'model.safetensors', content: Buffer.from('x') }], parameters: 7e10 }
    ]
  })
  undo.later(() => hub.close())
  daemon = await testDaemon({ fileConfig: { swarm: { enabled: false }, hub: { endpoint: hub.endpoint } } }, undo.later)
  await daemon.svc('import', 'hf', 'Acme/One')
}, 60_000)
afterAll(undo.all)

it('lists what the hub finds, with what is gated and what is here', async () => {
  const ran = await daemon.svc('search', 'acme')
  expect(ran.code).toBe(0)
  expect(ran.stdout).toMatch(/^Acme\/One +7\.6B +gguf +mit +1\.2M .* here$/m)
  expect(ran.stdout).toMatch(/^Acme\/Two .* gated$/m)
  expect((await daemon.svc('search', 'nobody')).stderr).toContain('nothing found')
})

it.each([
  [['--gguf'], ['Acme/One', 'Acme/Two']],
  [['--safetensors'], ['Acme/Weights']],
  [['--license', 'mit'], ['Acme/One']],
  [['--size', '1B-8B'], ['Acme/One']],
  [['--size', '10B-'], ['Acme/Weights']],
  [
    ['--limit', '2'],
    ['Acme/One', 'Acme/Two']
  ],
  [['--limit', '2', '--page', '2'], ['Acme/Weights']],
  [['--limit', '2', '--page', '3'], []]
])('svc search acme %j finds %j', async (args, repos) => {
  const ran = await daemon.svc('search', 'acme', ...args, '--format', 'ids')
  expect(ran).toMatchObject({ code: 0, stdout: repos.map((repo) => `${repo}\n`).join('') })
})

it('--json and --format json print one document, with the cursor of the next page', async () => {
  const ran = await daemon.svc('search', 'acme', '--limit', '1', '--json')
  const document = JSON.parse(ran.stdout)
  expect(document).toMatchObject({ entries: [{ repo: 'Acme/One', license: 'mit' }], next: expect.any(String) })
  expect(JSON.parse((await daemon.svc('search', 'acme', '--limit', '1', '--format', 'json')).stdout)).toEqual(document)
})

it('goes on to further pages when asked for more than the hub gives at once', async () => {
  for (let i = 0; i < 130; i++)
    hub.commit({ id: `many/m${i}`, files: [{ path: 'm-q8_0.gguf', content: Buffer.from(`${i}`) }] })
  const before = hub.requests.length
  const ran = await daemon.svc('search', 'many', '--limit', '120', '--format', 'ids')
  expect(new Set(ran.stdout.trim().split('\n')).size).toBe(120)
  expect(hub.requests.length - before).toBe(2)
  const rest = await daemon.svc('search', 'many', '--limit', '120', '--page', '2', '--format', 'ids')
  expect(rest.stdout.trim().split('\n')).toHaveLength(10)
})

it('--here needs no hub', async () => {
  const before = hub.requests.length
  expect((await daemon.svc('search', 'one', 'acme', '--here', '--format', 'ids')).stdout).toBe('acme/one:q8_0\n')
  expect((await daemon.svc('search', 'two', '--here', '--format', 'ids')).stdout).toBe('')
  expect(hub.requests.length).toBe(before)
})

it.each([
  [['--gguf', '--safetensors']],
  [['--catalog', '--here']],
  [['--here', '--gguf']],
  [['--size', 'large']],
  [['--size', '8B-1B']],
  [['--page', '0']],
  [['--limit', '1001']],
  [['--license', 'a b']],
  [['--format', 'xml']]
])('svc search acme %j is wrong usage', async (args) => {
  expect(await daemon.svc('search', 'acme', ...args)).toMatchObject({ code: 2, stdout: '' })
})

it('an error about a number names its option', async () => {
  expect((await daemon.svc('search', 'acme', '--limit', '1001')).stderr).toContain('--limit is a number from 1 to 1000')
})

it('without a hub it says where to look instead; a catalog that is off says so', async () => {
  const alone = await testDaemon({ fileConfig: { swarm: { enabled: false }, hub: { endpoint: 'http://127.0.0.1:9' } } })
  const ran = await alone.svc('search', 'acme')
  expect(ran).toMatchObject({ code: 6, stdout: '' })
  expect(ran.stderr).toContain('--here')
  expect((await daemon.svc('search', 'acme', '--catalog')).code).not.toBe(0)
})
