import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { FakeXetOptions } from '@svc/testkit/fake-xet'
import { missing, PYTHON } from '@svc/testkit/python-loaders'
import { expect, onTestFinished, test, vi } from 'vitest'
import { closeAfterTests } from '../fixtures.ts'
import {
  apartRig,
  closeXetAfterTests,
  fetchAll,
  MIB,
  modelOf,
  plainBytes,
  withInsertion,
  type XetRig,
  xetRig
} from './fixtures.ts'

// The fake speaks the protocol as the hub's own client does: otherwise what our client does with it would show little.
closeXetAfterTests()
closeAfterTests()
vi.setConfig({ testTimeout: 120_000 })

const run = promisify(execFile)
const SCRIPT = `
import sys, huggingface_hub, hf_xet
print(huggingface_hub.hf_hub_download("acme/model", "w.gguf", cache_dir=sys.argv[1]))
`

const absent = missing(['huggingface_hub', 'hf_xet'])
if (absent.length > 0) test.skip(`${absent.join(' and ')} not installed for ${PYTHON}`, () => {})

const downloads = (rig: XetRig, cache: string, env: Record<string, string> = {}) =>
  run(PYTHON, ['-c', SCRIPT, cache], {
    env: { ...process.env, HF_ENDPOINT: rig.fake.endpoint, HF_HOME: cache, HF_XET_CACHE: join(cache, 'xet'), ...env }
  })

async function tempCache(): Promise<string> {
  const cache = await mkdtemp(join(tmpdir(), 'svc-xet-'))
  onTestFinished(() => rm(cache, { recursive: true, force: true }))
  return cache
}

test.runIf(absent.length === 0).each<[string, FakeXetOptions, Record<string, string>]>([
  ['version 2', {}, {}],
  ['version 1', { version: 1 }, {}],
  ['chunks grouped by 4', { packing: () => 'grouped' }, {}],
  ['plain chunks', { packing: () => 'plain' }, {}],
  ['several ranges at one address', { isJoint: true }, { HF_XET_CLIENT_ENABLE_MULTIRANGE_FETCHING: 'true' }]
])('the hub’s own client downloads from the fake service byte for byte: %s', async (_, options, env) => {
  const cache = await tempCache()
  const isJoint = options.isJoint === true
  const before = modelOf(3 * MIB)
  const whole = withInsertion(before)
  const rig = isJoint ? await apartRig(options) : { ...(await xetRig(before, whole, options)), now: whole }
  const { stdout } = await downloads(rig, cache, env)
  expect(Buffer.compare(await readFile(stdout.trim().split('\n').at(-1)!), rig.now)).toBe(0)
  // through the service of chunks, and not beside it
  expect(plainBytes(rig)).toBe(0)
  const ranges = rig.xet.requests.filter(({ stage }) => stage === 'xorb').map(({ headers }) => headers.range)
  expect(ranges.length).toBeGreaterThan(0)
  expect(ranges.some((range) => range?.includes(','))).toBe(isJoint)
})

test.runIf(absent.length === 0)(
  'of a new 48 MiB version, the hub’s own client fetches everything, ours only what differs',
  async () => {
    const before = modelOf(48 * MIB)
    const rig = await xetRig(before, withInsertion(before))
    const { repoId: id } = rig.file
    const travelled = (): number => rig.xet.socketBytes() + plainBytes(rig)
    expect((await fetchAll(rig)).failure).toBeUndefined()
    expect(travelled()).toBeLessThan(MIB)
    const cache = await tempCache()
    rig.fake.commit({ id, files: [{ path: rig.file.path, content: before }] })
    await downloads(rig, cache)
    rig.fake.commit({ id, files: [{ path: rig.file.path, content: withInsertion(before) }] })
    const held = travelled()
    await downloads(rig, cache)
    expect(travelled() - held).toBeGreaterThan(48 * MIB)
  }
)
