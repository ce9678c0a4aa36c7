// What people type for a model: names of other tools, prefixes of quants, one shard of a set.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type FakeHub, startFakeHub } from '@svc/testkit/fake-hub'
import { makeGguf } from '@svc/testkit/models'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { ok, type TestDaemon, testDaemon, typing } from './support.ts'
import { putOllama } from './tool-caches.ts'

const REPO = 'Acme/Model-7B-GGUF'
let hub: FakeHub
let daemon: TestDaemon

beforeEach(async () => {
  hub = await startFakeHub()
  onTestFinished(() => hub.close())
  const paths = [
    'Model-7B-Q4_K_M.gguf',
    'Model-7B-Q8_0.gguf',
    'BF16/Model-7B.BF16-00001-of-00002.gguf',
    'BF16/Model-7B.BF16-00002-of-00002.gguf'
  ]
  hub.commit({ id: REPO, files: paths.map((path, i) => ({ path, content: makeGguf({ seed: i + 1 }) })) })
  daemon = await testDaemon({ fileConfig: { swarm: { enabled: false }, hub: { endpoint: hub.endpoint } } })
})

const refsIn = async (): Promise<string[]> => (await ok(daemon, 'ls', '-q')).split('\n').sort()
const [Q4, Q8, BF16] = ['q4_k_m', 'q8_0', 'bf16'].map((quant) => `acme/model-7b-gguf:${quant}`) as [
  string,
  string,
  string
]

test('svc rm takes a whole quant; of a prefix it asks, or removes nothing', async () => {
  await ok(daemon, 'import', 'hf', `${REPO}:Q4_K_M,Q8_0`)
  const refused = await daemon.svc('rm', 'acme/model-7b-gguf:Q4')
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining(Q4) })
  expect(await refsIn()).toEqual([Q4, Q8])
  const asked = (answer: string) =>
    daemon.svcWith(['rm', 'acme/model-7b-gguf:Q4'], { columns: 90, stdin: typing(answer) })
  expect((await asked('n')).code).toBe(2)
  expect((await asked('y')).code).toBe(0)
  expect(await refsIn()).toEqual([Q8])
  await ok(daemon, 'rm', 'acme/model-7b-gguf:Q8_0')
})

test.each([
  'hf.co/Acme/Model-7B-GGUF:Q8_0',
  'https://huggingface.co/Acme/Model-7B-GGUF:q8',
  'https://huggingface.co/Acme/Model-7B-GGUF/blob/main/Model-7B-Q8_0.gguf',
  'Acme/Model-7B-GGUF:Q8_0'
])('%s is a name for show, path, private, evict, pin, du and rm', async (name) => {
  await ok(daemon, 'import', 'hf', `${REPO}:Q4_K_M,Q8_0`)
  const path = await ok(daemon, 'path', name)
  expect(path).toBe(await ok(daemon, 'path', Q8))
  expect(await ok(daemon, 'show', name)).toContain(Q8)
  for (const command of ['private', 'pin', 'du', 'why', 'verify']) await ok(daemon, command, name)
  if (name.includes(':q8')) return
  await ok(daemon, 'rm', name)
  expect(await refsIn()).toEqual([Q4])
})

test("a repository that was imported under another name is found by the hub's", async () => {
  await ok(daemon, 'import', 'hf', `${REPO}:Q8_0`, '--as', 'me/mine')
  expect(await ok(daemon, 'path', `hf.co/${REPO}:Q8_0`)).toBe(await ok(daemon, 'path', 'me/mine'))
})

test("an adopted model is found by Ollama's name", async () => {
  const root = join(daemon.folder, 'ollama')
  putOllama(root, 'qwen3', '4b', makeGguf({ seed: 11 }), 'Q4_K_M')
  putOllama(root, 'qwen3', '8b-q8_0', makeGguf({ seed: 12 }), 'Q8_0')
  await ok(daemon, 'adopt', root, '--yes')
  const path = await ok(daemon, 'path', 'ollama/qwen3-4b')
  for (const name of ['qwen3:4b', 'ollama.com/library/qwen3:4b', 'ollama/qwen3:4b'])
    expect(await ok(daemon, 'path', name)).toBe(path)
  expect(await ok(daemon, 'show', 'qwen3:8b-q8_0')).toContain('ollama/qwen3-8b:q8_0')
  await ok(daemon, 'pull', 'qwen3:4b')
  expect((await daemon.svc('path', 'qwen3:14b')).code).toBe(3)
})

test('a unique prefix of a quant is enough for an import', async () => {
  await ok(daemon, 'import', `${REPO}:q8,BF`)
  expect(await refsIn()).toEqual([BF16, Q8])
  expect((await daemon.svc('import', `${REPO}:q5`)).code).toBe(3)
  expect(await ok(daemon, 'import', `${REPO}:q4`, '--dry-run')).toContain('q4_k_m')
})

test('svc pull imports a quant that is not here from where the others came', async () => {
  await ok(daemon, 'import', 'hf', `${REPO}:Q8_0`, '--as', 'me/mine')
  await ok(daemon, 'pull', 'me/mine:Q4_K_M')
  expect(await refsIn()).toEqual(['me/mine:q4_k_m', 'me/mine:q8_0'])
  await ok(daemon, 'pull', 'mine:bf')
  expect(await refsIn()).toEqual(['me/mine:bf16', 'me/mine:q4_k_m', 'me/mine:q8_0'])
  expect((await daemon.svc('pull', 'me/mine:q2_k')).code).not.toBe(0)
})

test('the address or name of one shard imports the set', async () => {
  await ok(daemon, 'import', `https://huggingface.co/${REPO}/blob/main/BF16/Model-7B.BF16-00001-of-00002.gguf`)
  expect(await refsIn()).toEqual([BF16])
  expect((await ok(daemon, 'path', '--all', BF16)).split('\n')).toHaveLength(2)
  for (const part of [1, 2])
    writeFileSync(join(daemon.folder, `mine-q4_0-0000${part}-of-00002.gguf`), makeGguf({ seed: 20 + part }))
  await ok(daemon, 'import', 'local', 'mine-q4_0-00002-of-00002.gguf', '--as', 'me/split')
  expect((await ok(daemon, 'path', '--all', 'me/split')).split('\n')).toHaveLength(2)
})

test('--file without a folder matches in any', async () => {
  await ok(daemon, 'import', 'hf', REPO, '--file', '*bf16*')
  expect(await refsIn()).toEqual([BF16])
})
