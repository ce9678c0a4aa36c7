// Repositories as publishers make them: the plan names what it leaves out, and what comes is all the rest, byte for byte; llama.cpp loads it.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type FakeHub, startFakeHub } from '@svc/testkit/fake-hub'
import { haveLlamaCpp, probableNext } from '@svc/testkit/llama-cpp'
import { missingForRows, PYTHON, ROWS, startPythonLoaders } from '@svc/testkit/python-loaders'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { folderAt } from './folders.ts'
import { comingOf, filesOf, SHAPES, type Shape } from './repository-shapes.ts'
import { laterUndo, ok, type TestDaemon, testDaemon } from './support.ts'

const undo = laterUndo()
afterAll(undo.all)
let hub: FakeHub
let daemon: TestDaemon
let mirror: string

const idOf = ({ shape }: Shape): string => `Acme/M${SHAPES.findIndex((each) => each.shape === shape)}`

beforeAll(async () => {
  hub = await startFakeHub()
  undo.later(() => hub.close())
  const fileConfig = { swarm: { enabled: false }, hub: { endpoint: hub.endpoint }, mirror: { hub_addr: '127.0.0.1:0' } }
  daemon = await testDaemon({ fileConfig }, undo.later)
  mirror = `http://${JSON.parse(readFileSync(join(daemon.folder, 'runtime.json'), 'utf8')).hubMirrorAddress}`
  for (const shape of SHAPES) {
    const { branch } = shape
    if (branch !== undefined)
      hub.commit({ id: idOf(shape), files: [{ path: 'README.md', content: Buffer.from('branches\n') }] })
    hub.commit({ id: idOf(shape), files: filesOf(shape), ...(branch !== undefined && { branch }) })
  }
}, 60_000)

it('there are forty', () => expect(SHAPES.length).toBeGreaterThanOrEqual(40))

interface Plan {
  readonly quants: readonly string[]
  readonly files: readonly {
    readonly name: string
    readonly upstream?: string
    readonly size: number
    readonly action: string
    readonly reason?: string
    readonly companion?: boolean
  }[]
}

describe.each(SHAPES)('$shape', (shape) => {
  const { typed = [], quants, leftOut = [], llamaCpp } = shape
  const [first, ...flags] = typed
  const words = first?.startsWith(':')
    ? [idOf(shape) + first, ...flags]
    : [idOf(shape) + (shape.branch ? `@${shape.branch}` : ''), ...typed]

  it('the plan tells what comes, in bytes, and why the rest does not', async () => {
    const plan = JSON.parse(await ok(daemon, 'import', 'hf', ...words, '--dry-run', '--json')) as Plan
    expect(plan.quants).toEqual(quants)
    const out = plan.files.filter(({ action, companion }) => action === 'skip' && companion !== true)
    expect(out.map(({ name, upstream = name }) => upstream).sort()).toEqual([...leftOut].sort())
    expect(out.filter(({ reason = '' }) => reason === '')).toEqual([])
    const come = plan.files.filter((file) => !out.includes(file))
    const expected = comingOf(shape).map(({ path, content }) => [path, content.length])
    expect(come.map(({ name, upstream = name, size }) => [upstream, size]).sort()).toEqual(expected.sort())
  })

  it('it comes byte for byte', async () => {
    await ok(daemon, 'import', 'hf', ...words)
    const tree = await (await fetch(`${mirror}/api/models/${idOf(shape)}/tree/main?recursive=true`)).json()
    const listed = (tree as { type: string; path: string }[]).flatMap(({ type, path }) => (type === 'file' ? path : []))
    const coming = comingOf(shape)
    expect(listed.sort()).toEqual(coming.map(({ path }) => path).sort())
    for (const { path, content } of coming) {
      const answer = await fetch(`${mirror}/${idOf(shape)}/resolve/main/${path}`)
      expect([path, Buffer.from(await answer.arrayBuffer()).equals(content)]).toEqual([path, true])
    }
  })

  if (llamaCpp === undefined) return
  it.skipIf(!haveLlamaCpp)('llama.cpp loads it', async () => {
    const path = await ok(daemon, 'path', `${idOf(shape).toLowerCase()}:${quants[0]}`)
    const original = comingOf(shape).find((file) => file.path === llamaCpp)!
    expect(readFileSync(path).equals(original.content)).toBe(true)
    expect((await probableNext(path)).size).toBeGreaterThan(0)
  })
})

/** What the libraries of a loader write, with what publishers put beside it. */
const LOADED = [
  ['sharded', 'Mistral: consolidated beside parts, a large tokenizer'],
  ['sharded', 'gpt-oss: original/ beside parts'],
  ['llama', 'vocabularies of other kinds']
] as const
const OF_LOADER = /^(?:model.*|config|tokenizer.*)\.(?:json|safetensors)$/

const missing = missingForRows()
if (missing.length > 0) it.skip(`shapes in transformers: ${missing.join(', ')} not installed for ${PYTHON}`, () => {})

it.skipIf(missing.length > 0)('transformers computes the same from what comes', { timeout: 120_000 }, async () => {
  const python = startPythonLoaders({}, ROWS)
  undo.later(() => python.close())
  for (const [kind, name] of LOADED) {
    const shape = SHAPES.find((each) => each.shape === name)!
    const original = join(daemon.folder, 'made', idOf(shape))
    await python.ask('make', kind, original)
    const made = [...folderAt(original)].map(([path, content]) => ({ path, content }))
    const beside = filesOf(shape).filter(({ path }) => !OF_LOADER.test(path))
    const id = idOf(shape).replace('/M', '/Loaded')
    hub.commit({ id, files: [...made, ...beside] })
    const folder = await ok(daemon, 'path', await ok(daemon, 'import', 'hf', id), '--dir')
    const coming = beside.filter(({ path }) => shape.leftOut?.includes(path) !== true)
    expect([...folderAt(folder).keys()].sort()).toEqual([...made, ...coming].map(({ path }) => path).sort())
    expect(await python.ask('load', kind, folder)).toEqual(await python.ask('load', kind, original))
  }
})
