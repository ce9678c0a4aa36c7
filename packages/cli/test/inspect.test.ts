// `svc inspect` of folders, models and repositories, and the rules that ask for it at an import.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type FakeHub, startFakeHub } from '@svc/testkit/fake-hub'
import { makeGguf, makeSafetensors } from '@svc/testkit/models'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { laterUndo, ok, type TestDaemon, testDaemon } from './support.ts'

const undo = laterUndo()
const text = (content: string): Buffer => Buffer.from(content)
const CLEAN = {
  'config.json': text('{"model_type":"llama"}'),
  'tokenizer_config.json': text('{"tokenizer_class":"LlamaTokenizer"}'),
  'model.safetensors': makeSafetensors({ seed: 1 })
}
const BAD = {
  ...CLEAN,
  'config.json': text('{"auto_map":{"AutoModel":"modeling_x.X"}}'),
  'modeling_x.py': text('print(1)'),
  'tokenizer_config.json': text('{"vocab_file":"../../secret"}')
}
let hub: FakeHub
let daemon: TestDaemon
let folder: string

beforeAll(async () => {
  hub = await startFakeHub({})
  undo.later(() => hub.close())
  const listed = (files: Readonly<Record<string, Buffer>>) =>
    Object.entries(files).map(([path, content]) => ({ path, content }))
  for (const owner of ['acme', 'warned', 'refused']) hub.commit({ id: `${owner}/bad`, files: listed(BAD) })
  hub.commit({ id: 'refused/clean', files: listed(CLEAN) })
  const odd = makeGguf({ seed: 2, metadata: { 'tokenizer.chat_template': "{{ x|attr('y') }}" } })
  hub.commit({ id: 'acme/gguf', files: [{ path: 'm-q8_0.gguf', content: odd }] })
  const trust = [
    { names: ['warned/*'], inspect: 'warn' },
    { names: ['refused/*'], inspect: 'refuse' }
  ]
  daemon = await testDaemon(
    { fileConfig: { swarm: { enabled: false }, hub: { endpoint: hub.endpoint }, trust } },
    undo.later
  )
  folder = mkdtempSync(join(tmpdir(), 'svc-inspect-'))
  undo.later(() => rmSync(folder, { recursive: true, force: true }))
  for (const [name, content] of Object.entries({ ...BAD, 'sub/b.pkl': text('x') })) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), content)
  }
}, 60_000)
afterAll(undo.all)

const FOUND = [
  ['config.json', 'auto_map', 'runs-code'],
  ['modeling_x.py', undefined, 'runs-code'],
  ['tokenizer_config.json', 'vocab_file', 'malformed']
]
const foundIn = (json: string): (string | undefined)[][] =>
  JSON.parse(json).findings.map(({ file, key, is }: Record<string, string>) => [file, key, is])

it('a folder needs no daemon; --strict exits with 5', async () => {
  const found = foundIn(await ok(daemon, 'inspect', folder, '--json'))
  expect(found).toEqual([...FOUND.slice(0, 2), ['sub/b.pkl', undefined, 'runs-code'], ...FOUND.slice(2)])
  const ran = await daemon.svc('inspect', folder, '--strict')
  expect(ran.code).toBe(5)
  expect(ran.stdout).toMatch(/^RUNS CODE +config\.json +auto_map +/m)
  expect((await daemon.svc('inspect', join(folder, 'model.safetensors'), '--strict')).code).toBe(0)
})

it('a repository, before anything of it is fetched', async () => {
  const sent = hub.bytesSent.get('model.safetensors') ?? 0
  expect(foundIn(await ok(daemon, 'inspect', 'hf', 'acme/bad', '--json'))).toEqual(FOUND)
  expect((hub.bytesSent.get('model.safetensors') ?? 0) - sent).toBeLessThanOrEqual(CLEAN['model.safetensors'].length)
  expect(foundIn(await ok(daemon, 'inspect', 'hf', 'acme/gguf', '--json'))).toEqual([
    ['m-q8_0.gguf', 'tokenizer.chat_template', 'runs-code']
  ])
  expect((await daemon.svc('inspect', 'hf', 'refused/clean', '--strict')).code).toBe(0)
  expect(await ok(daemon, 'ls', '-q')).toBe('')
})

it('a model here', async () => {
  const ref = await ok(daemon, 'import', 'hf', 'acme/bad')
  expect(foundIn(await ok(daemon, 'inspect', ref, '--json'))).toEqual(FOUND)
  expect(await ok(daemon, 'show', ref)).toMatch(/^ +RUNS CODE config\.json \(auto_map\) .* svc inspect acme\/bad:/m)
  const plan = await daemon.svc('import', 'hf', 'acme/bad', '--dry-run')
  expect(plan.stderr).toContain('config.json (auto_map) loads classes from Python files, and 1 more')
  expect((await daemon.svc('import', 'hf', 'refused/clean', '--dry-run')).stderr).not.toContain('svc inspect')
})

it('a rule warns of such models, or refuses them', async () => {
  const warned = await daemon.svc('import', 'hf', 'warned/bad')
  expect(warned.code).toBe(0)
  expect(warned.stderr).toContain('config.json (auto_map) loads classes from Python files')
  expect(warned.stderr).toContain('tokenizer_config.json (vocab_file)')
  const refused = await daemon.svc('import', 'hf', 'refused/bad')
  expect(refused.code).not.toBe(0)
  expect(refused.stderr).toContain('refused by the rule [[trust]] 2 (refused/*)')
  expect((await daemon.svc('import', 'hf', 'refused/clean')).code).toBe(0)
  expect(await ok(daemon, 'ls', '-q')).not.toContain('refused/bad')
})

it('a rule looks at each file, however much there is to read in those before it', async () => {
  const late = mkdtempSync(join(tmpdir(), 'svc-inspect-late-'))
  undo.later(() => rmSync(late, { recursive: true, force: true }))
  const long = { 'x.padding': 'x'.repeat(23 << 20) }
  for (const [i, quant] of ['q4_0', 'q5_0'].entries())
    writeFileSync(join(late, `m-${quant}.gguf`), makeGguf({ seed: i, metadata: long }))
  const odd = { 'tokenizer.chat_template': "{{ x|attr('y') }}" }
  writeFileSync(join(late, 'm-q8_0.gguf'), makeGguf({ seed: 2, metadata: odd }))
  const refused = await daemon.svc('import', 'local', late, '--as', 'refused/late', '--private')
  expect(refused.stderr).toContain('refused by the rule [[trust]] 2 (refused/*)')
  expect(refused.stderr).toContain('m-q8_0.gguf (tokenizer.chat_template)')
})
