// The real transformers.js loads a repository that svc took as it is: from the hub mirror, and through the store as its cache.
import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { startFakeHub } from '@svc/testkit/fake-hub'
import { makeOnnxEncoder } from '@svc/testkit/onnx'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { laterUndo, ok, type TestDaemon, testDaemon } from './support.ts'

vi.setConfig({ testTimeout: 120_000 })
/** A folder in which `npm install @huggingface/transformers` ran. */
const installed = process.env.SVC_TRANSFORMERS_JS ?? ''
const isThere = existsSync(join(installed, 'node_modules/@huggingface/transformers'))
const CHILD = fileURLToPath(new URL('./transformers-js-child.ts', import.meta.url))
const REPO = 'Acme/Encoder-ONNX'
const undo = laterUndo()
let daemon: TestDaemon
let mirror: string

beforeAll(async () => {
  const hub = await startFakeHub()
  undo.later(() => hub.close())
  const config = { model_type: 'bert', architectures: ['BertModel'], hidden_size: 1 }
  hub.commit({
    id: REPO,
    files: [
      { path: 'config.json', content: Buffer.from(JSON.stringify(config)) },
      { path: 'onnx/model.onnx', content: makeOnnxEncoder(), lfs: true }
    ]
  })
  const fileConfig = { swarm: { enabled: false }, hub: { endpoint: hub.endpoint }, mirror: { hub_addr: '127.0.0.1:0' } }
  daemon = await testDaemon({ fileConfig }, undo.later)
  await ok(daemon, 'import', 'hf', REPO, '--opaque')
  mirror = JSON.parse(readFileSync(join(daemon.folder, 'runtime.json'), 'utf8')).hubMirrorAddress
  await hub.close()
}, 60_000)
afterAll(undo.all)

async function computed(...args: readonly string[]): Promise<unknown> {
  const module = join(installed, 'node_modules/@huggingface/transformers/dist/transformers.node.mjs')
  const { stdout } = await promisify(execFile)(process.execPath, ['--conditions=svc-source', CHILD, module, ...args])
  return JSON.parse(stdout)
}

it.skipIf(!isThere).each(['the hub mirror', 'the store as its cache'])(
  'transformers.js loads an opaque model from %s',
  async (way) => {
    const cache = join(daemon.folder, 'own cache')
    const args =
      way === 'the hub mirror' ? [`http://${mirror}/`, cache] : ['http://127.0.0.1:1/', '', daemon.socketPath]
    expect(await computed(REPO, ...args)).toEqual({ dims: [1, 3, 1], data: [7, 11, 13] })
  }
)
