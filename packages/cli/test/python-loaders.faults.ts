// Python's loaders and views: models that the loaders wrote themselves, through svc, and back into the loaders.
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { startFakeHub } from '@svc/testkit/fake-hub'
import { makeLlamaGgufs } from '@svc/testkit/llama-gguf'
import { makeGguf } from '@svc/testkit/models'
import { missingModules, PYTHON, type PythonLoaders, startPythonLoaders } from '@svc/testkit/python-loaders'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { laterUndo, type TestDaemon, testDaemon } from './support.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

interface Loaded {
  readonly ids: number[]
  readonly chat: string
  readonly said: string
}

const undo = laterUndo()
afterAll(undo.all)
let daemon: TestDaemon
let python: PythonLoaders
let model: string
async function line(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await daemon.svc(...args)
  if (code !== 0) throw new Error(stderr)
  return stdout.trimEnd()
}

const isThere = missingModules.length === 0
const withPython = it.skipIf(!isThere)
if (!isThere) it.skip(`the loaders of Python: ${missingModules.join(', ')} not installed for ${PYTHON}`, () => {})

beforeAll(async () => {
  if (!isThere) return
  daemon = await testDaemon({}, undo.later)
  python = startPythonLoaders()
  undo.later(() => python.close())
  model = join(daemon.folder, 'Tiny')
  const written = await python.ask<string[]>('make', model)
  expect(written).toEqual(expect.arrayContaining(['model.safetensors.index.json', 'lora/adapter_model.safetensors']))
  expect(written.filter((name) => /^model-\d{5}-of-\d{5}\.safetensors$/.test(name)).length).toBeGreaterThan(1)
  await line('import', 'local', model, '--as', 'acme/tiny')
})

withPython(
  'the helper of the client loads a model and its tokenizer by reference, without a variable of the hub',
  async () => {
    const script = [
      'from transformers import AutoModelForCausalLM, AutoTokenizer',
      'from svc_client.transformers import load',
      'tokenizer = load(AutoTokenizer, "acme/tiny:f32")',
      'model = load(AutoModelForCausalLM, "acme/tiny")',
      'print(tokenizer("hello world of models").input_ids, type(model).__name__)'
    ]
    const client = fileURLToPath(new URL('../../../python/svc-client/src', import.meta.url))
    const env = { PATH: process.env.PATH, HOME: daemon.folder, SVC_SOCKET: daemon.socketPath, PYTHONPATH: client }
    const { stdout } = await promisify(execFile)(PYTHON, ['-c', script.join('\n')], { env })
    expect(stdout).toMatch(/^\[1, 2, 3, 4\] Llama/m)
  }
)

withPython(
  'transformers loads the folder: shards, tokenizer, chat template; the model says what it said before',
  async () => {
    const folder = await line('path', 'acme/tiny:f32', '--dir')
    const loaded = await python.ask<Loaded>('load', folder)
    expect(loaded).toMatchObject({ ids: [1, 2, 3, 4], chat: 'hello world of models ' })
    expect(loaded).toEqual(await python.ask<Loaded>('load', model))
    const shard = readdirSync(folder).find((name) => name.startsWith('model-00001-of-'))!
    expect(Object.keys(await python.ask<object>('read_safetensors', join(folder, shard)))).toContain(
      'model.embed_tokens.weight'
    )
  }
)

withPython('transformers loads the folder that the Python client names, as the guide has it', async () => {
  const at = (path: string): string => fileURLToPath(new URL(`../../../${path}`, import.meta.url))
  const guide = readFileSync(at('docs/guide/python.md'), 'utf8')
  const [, named] = /^model = transformers.*from_pretrained\((.*)\)$/m.exec(guide)!
  const script = `from svc_client import Client\nclient = Client()\nprint(${named!.replace('acme/model-7b:bf16', 'acme/tiny:f32')})`
  const env = { ...process.env, SVC_SOCKET: daemon.socketPath, PYTHONPATH: at('python/svc-client/src') }
  const { stdout } = await promisify(execFile)(PYTHON, ['-c', script], { env })
  expect(await python.ask<Loaded>('load', stdout.trim())).toMatchObject({ ids: [1, 2, 3, 4] })
})

withPython('peft loads the adapter from its folder in the view', async () => {
  const folder = await line('path', 'acme/tiny:f32', '--dir')
  const bare = await python.ask<Loaded>('load', folder)
  const adapted = await python.ask<Loaded>('load', folder, join(folder, 'lora'))
  expect(adapted).toEqual(await python.ask<Loaded>('load', model, join(model, 'lora')))
  expect(adapted.said).not.toBe(bare.said)
})

withPython('gguf_file= takes what svc path prints, and so does the reader of GGUF files', async () => {
  mkdirSync(join(daemon.folder, 'Gguf'))
  writeFileSync(join(daemon.folder, 'Gguf/Tiny-F32.gguf'), makeLlamaGgufs()[0]!)
  writeFileSync(join(daemon.folder, 'Gguf/Tiny-Q8_0.gguf'), makeGguf())
  await line('import', 'local', join(daemon.folder, 'Gguf'), '--as', 'acme/gguf')
  const path = await line('path', 'acme/gguf:f32')
  const loaded = await python.ask<{ layers: number; said: string }>('load_gguf', dirname(path), basename(path))
  expect(loaded.layers).toBe(2)
  expect(loaded).toEqual(await python.ask('load_gguf', join(daemon.folder, 'Gguf'), 'Tiny-F32.gguf'))
  const { tensors } = await python.ask<{ tensors: string[] }>('read_gguf', path)
  expect(tensors).toContain('blk.1.ffn_down.weight')
})

withPython('huggingface_hub and transformers find the model by its name in a hub cache, offline', async () => {
  const cache = join(daemon.folder, 'cache')
  await line('view', 'acme/tiny:f32', cache, '--layout', 'hf')
  const script = [
    'import json, huggingface_hub as hub',
    'folder = hub.snapshot_download("acme/tiny")',
    'file = hub.hf_hub_download("acme/tiny", "config.json")',
    'found = hub.scan_cache_dir()',
    'repos = [[r.repo_id, [[v.commit_hash, sorted(v.refs), v.nb_files] for v in r.revisions]] for r in found.repos]',
    'print(json.dumps([folder, file, repos, [str(w) for w in found.warnings]]))'
  ].join('\n')
  const env = { ...process.env, HF_HUB_CACHE: cache, HF_HUB_OFFLINE: '1' }
  const { stdout } = await promisify(execFile)(PYTHON, ['-c', script], { env })
  const [folder, file, repos, warnings] = JSON.parse(stdout) as [string, string, unknown, string[]]
  expect(file).toBe(join(folder, 'config.json'))
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => !entry.isDirectory())
  expect([repos, warnings]).toEqual([[['acme/tiny', [[basename(folder), ['main'], files.length]]]], []])
  expect(await python.ask('load', 'acme/tiny', null, cache)).toEqual(await python.ask('load', model))

  // a second model, and another quant of the first, join it
  mkdirSync(join(daemon.folder, 'Second'))
  writeFileSync(join(daemon.folder, 'Second/Second-Q8_0.gguf'), makeGguf({ seed: 8 }))
  writeFileSync(join(daemon.folder, 'Second/Second-Q4_0.gguf'), makeGguf({ seed: 9 }))
  await line('import', 'local', join(daemon.folder, 'Second'), '--as', 'acme/second')
  for (const quant of ['q8_0', 'q4_0']) await line('view', `acme/second:${quant}`, cache, '--layout', 'hf')
  const both = [
    'import json, huggingface_hub as hub',
    'repos = sorted(r.repo_id for r in hub.scan_cache_dir().repos)',
    'files = [hub.hf_hub_download("acme/second", f"second-{q}.gguf") for q in ["q8_0", "q4_0"]]',
    'files.append(hub.hf_hub_download("acme/tiny", "config.json"))',
    'print(json.dumps([repos, files]))'
  ].join('\n')
  const [ids, files2] = JSON.parse((await promisify(execFile)(PYTHON, ['-c', both], { env })).stdout)
  expect([ids, files2[2]]).toEqual([['acme/second', 'acme/tiny'], join(folder, 'config.json')])
  expect(await python.ask('load', 'acme/tiny', null, cache)).toEqual(await python.ask('load', model))
  expect((await daemon.svc('view', '--json')).stdout).toContain('"others":["sha256:')
})

withPython('a cache that huggingface_hub wrote is adopted, and what went bad in it is named', async () => {
  const hub = await startFakeHub()
  undo.later(() => hub.close())
  const commit = hub.commit({
    id: 'Acme/Wrote-GGUF',
    files: [
      { path: 'wrote-Q8_0.gguf', content: makeGguf({ seed: 5 }) },
      { path: 'wrote-Q4_0.gguf', content: makeGguf({ seed: 6 }) },
      { path: 'config.json', content: Buffer.from('{"model_type":"llama"}') }
    ]
  })
  const cache = join(daemon.folder, 'theirs')
  const script = 'import huggingface_hub as hub, sys; print(hub.snapshot_download("Acme/Wrote-GGUF"))'
  const env = { ...process.env, HF_HUB_CACHE: cache, HF_ENDPOINT: hub.endpoint, HF_HUB_DISABLE_XET: '1' }
  const { stdout } = await promisify(execFile)(PYTHON, ['-c', script], { env })
  expect(existsSync(join(stdout.trim(), 'wrote-Q4_0.gguf'))).toBe(true)
  // as if a tool had written through the link
  writeFileSync(join(stdout.trim(), 'wrote-Q4_0.gguf'), makeGguf({ seed: 7 }))
  const ran = await daemon.svc('adopt', cache, '--json')
  expect(ran.code).toBe(5)
  expect(JSON.parse(ran.stdout).models).toMatchObject([
    { tool: 'hf', source: 'Acme/Wrote-GGUF', refs: ['acme/wrote-gguf:q8_0'], damaged: [{ name: 'wrote-Q4_0.gguf' }] }
  ])
  const { annotations } = JSON.parse(await line('show', 'acme/wrote-gguf:q8_0', '--json'))
  expect(annotations).toMatchObject({ 'svc.hf.repo': 'Acme/Wrote-GGUF', 'svc.hf.revision': commit })
})
