// Repositories of the hub that have no owner, or no weights that can be kept: imported, and through the hub mirror.
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { downloadFileToCacheDir } from '@huggingface/hub'
import { type FakeHub, startFakeHub } from '@svc/testkit/fake-hub'
import { makeModelFolder } from '@svc/testkit/models'
import { missingModules, PYTHON } from '@svc/testkit/python-loaders'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { laterUndo, type TestDaemon, testDaemon } from './support.ts'

vi.setConfig({ testTimeout: 60_000 })
const undo = laterUndo()
const LATER = 'tiny-later'
let hub: FakeHub
let daemon: TestDaemon
let mirror: string

const CONFIG = Buffer.from('{"model_type":"bert"}')
const FOREIGN = [
  ['pickle', 'pytorch_model.bin'],
  ['old-pickle', 'nested/weights.ckpt'],
  ['onnx', 'onnx/model.onnx'],
  ['whisper-cpp', 'ggml-base.en.bin'],
  ['flax', 'flax_model.msgpack']
] as const

beforeAll(async () => {
  hub = await startFakeHub()
  undo.later(() => hub.close())
  for (const [name, file] of FOREIGN)
    hub.commit({
      id: `acme/${name}`,
      files: [
        { path: 'config.json', content: CONFIG },
        { path: file, content: Buffer.alloc(100_000, name) }
      ]
    })
  daemon = await testDaemon(
    {
      fileConfig: {
        swarm: { enabled: false },
        hub: { endpoint: hub.endpoint },
        mirror: { hub_addr: '127.0.0.1:0', on_demand: true, on_demand_allow: ['acme/*', LATER] }
      }
    },
    undo.later
  )
  mirror = `http://${JSON.parse(readFileSync(join(daemon.folder, 'runtime.json'), 'utf8')).hubMirrorAddress}`
  makeModelFolder(join(daemon.folder, 'tiny'))
  const files = ['config.json', 'model.safetensors', 'tokenizer.json'].map((path) => ({
    path,
    content: readFileSync(join(daemon.folder, 'tiny', path))
  }))
  for (const id of ['tiny-old', LATER]) hub.commit({ id, files })
}, 60_000)
afterAll(undo.all)

it.each(FOREIGN)('acme/%s is refused by the plan, the import and the mirror, which name %s', async (name, file) => {
  for (const command of [
    ['import', 'hf', `acme/${name}`, '--dry-run'],
    ['import', `acme/${name}`],
    ['pull', `acme/${name}`]
  ]) {
    const ran = await daemon.svc(...command, '--json')
    expect(ran).toMatchObject({ code: 1, stdout: '' })
    const { code, message } = JSON.parse(ran.stderr).error as { code: string; message: string }
    expect([code, message.includes(file)]).toEqual(['E_NOT_IMPORTABLE', true])
  }
  for (const path of [`api/models/acme/${name}/revision/main`, `acme/${name}/resolve/main/config.json`]) {
    const answer = await fetch(`${mirror}/${path}`)
    expect([answer.status, answer.headers.get('x-error-code')]).toEqual([404, 'RepoNotFound'])
    expect(answer.headers.get('x-error-message')).toContain(file)
  }
  // to see whether it is gated, svc asks for one byte
  expect(hub.bytesSent.get(file) ?? 0).toBeLessThan(100)
})

const python = async (script: string, env: NodeJS.ProcessEnv): Promise<string> =>
  (await promisify(execFile)(PYTHON, ['-c', script], { env: { ...process.env, ...env } })).stdout.trim()

it('the hub’s own clients find a repository without an owner by its name, stored or on demand', async () => {
  expect((await daemon.svc('import', 'tiny-old')).stdout).toBe('hf.co/tiny-old:bf16\n')
  const weights = readFileSync(join(daemon.folder, 'tiny/model.safetensors'))
  for (const repo of ['tiny-old', LATER]) {
    const info = (await (await fetch(`${mirror}/api/models/${repo}`)).json()) as { id: string; author?: string }
    expect([info.id, info.author]).toEqual([repo, undefined])
    const cacheDir = join(daemon.folder, `js-${repo}`)
    const path = await downloadFileToCacheDir({ repo, path: 'model.safetensors', hubUrl: mirror, cacheDir })
    expect(readFileSync(path).equals(weights)).toBe(true)
    for (const url of [`api/models/${repo}/refs`, `api/models/${repo}/tree/main`, `${repo}/resolve/main/config.json`])
      expect((await fetch(`${mirror}/${url}`)).status).toBe(200)
  }
  expect((await fetch(`${mirror}/api/models/tiny-other`)).status).toBe(404)
})

it.skipIf(missingModules.includes('huggingface_hub'))(
  'huggingface_hub takes a snapshot of a repository without an owner, and says why one has no weights',
  async () => {
    await daemon.svc('import', 'tiny-old')
    const env = { HF_ENDPOINT: mirror, HF_HUB_CACHE: join(daemon.folder, 'py'), HF_HUB_DISABLE_XET: '1' }
    const folder = await python('import huggingface_hub as h; print(h.snapshot_download("tiny-old"))', env)
    expect(folder).toContain('models--tiny-old/snapshots/')
    expect(readFileSync(join(folder, 'config.json'))).toEqual(readFileSync(join(daemon.folder, 'tiny/config.json')))
    const failing = [
      'import huggingface_hub as h',
      'try: h.snapshot_download("acme/pickle")',
      'except h.errors.RepositoryNotFoundError as error: print(error)'
    ].join('\n')
    expect(await python(failing, env)).toContain('pytorch_model.bin')
  }
)
