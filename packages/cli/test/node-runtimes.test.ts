// Node programs load models of the store: node-llama-cpp by a resolved path, transformers.js through its custom cache.
import { readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createClient } from '@svc/client'
import { resolveModel, storeCache } from '@svc/client/runtimes'
import { startFakeHub } from '@svc/testkit/fake-hub'
import { haveLlamaCpp, loadLlama } from '@svc/testkit/llama-cpp'
import { makeLlamaGgufs } from '@svc/testkit/llama-gguf'
import { makeModelFolder } from '@svc/testkit/models'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { laterUndo, ok, type TestDaemon, testDaemon } from './support.ts'

vi.setConfig({ testTimeout: 60_000 })
const undo = laterUndo()
let daemon: TestDaemon
let client: ReturnType<typeof createClient>

beforeAll(async () => {
  const hub = await startFakeHub()
  undo.later(() => hub.close())
  const { folder } = (daemon = await testDaemon(
    { fileConfig: { swarm: { enabled: false }, hub: { endpoint: hub.endpoint } } },
    undo.later
  ))
  client = createClient({ socketPath: daemon.socketPath })
  const names = makeModelFolder(join(folder, 'upstream'), { ggufs: {} })
  const files = names.map((path) => ({ path, content: readFileSync(join(folder, 'upstream', path)) }))
  hub.commit({ id: 'Acme/Tiny', files })
  await ok(daemon, 'import', 'hf', 'Acme/Tiny')
  writeFileSync(join(folder, 'llama-q8_0.gguf'), makeLlamaGgufs()[0]!)
  await ok(daemon, 'import', 'local', 'llama-q8_0.gguf', '--as', 'me/llama')
}, 60_000)
afterAll(undo.all)

it('svc:/// is the path of the GGUF or of one file, and other text stays as it is', async () => {
  const path = await resolveModel('svc:///me/llama:q8_0', client)
  expect(path).toMatch(/\/llama-q8_0\.gguf$/)
  expect(realpathSync(path).startsWith(realpathSync(daemon.root))).toBe(true)
  expect(await resolveModel('svc://me/llama:q8_0#llama-q8_0.gguf', client)).toBe(path)
  for (const other of ['hf:me/llama:q8_0', '/models/llama.gguf']) expect(await resolveModel(other, client)).toBe(other)
  await expect(resolveModel('svc:///me/llama:q8_0#absent', client)).rejects.toMatchObject({ code: 'E_NOT_FOUND' })
  await expect(resolveModel('svc:///me/absent:q8_0', client)).rejects.toMatchObject({ code: 'E_UNKNOWN_REF' })
})

it.skipIf(!haveLlamaCpp)('node-llama-cpp loads what it resolves', async () => {
  const path = await resolveModel('svc:///me/llama:q8_0', client)
  expect((await loadLlama(path)).vocabularySize).toBeGreaterThan(0)
})

it('the cache of transformers.js has the files of a repository under the names of the hub', async () => {
  const cache = storeCache(client)
  const at = (file: string, repo = 'Acme/Tiny'): string => `https://hub.example/${repo}/resolve/main/${file}`
  const config = readFileSync(join(daemon.folder, 'upstream', 'config.json'))
  for (const request of [at('config.json'), new Request(at('config.json'))]) {
    const answer = await cache.match(request)
    expect(Buffer.from(await answer!.arrayBuffer())).toEqual(config)
    expect(answer!.headers.get('content-length')).toBe(String(config.length))
  }
  const weights = await cache.match(at('model.safetensors'))
  expect((await weights!.arrayBuffer()).byteLength).toBeGreaterThan(0)
  for (const absent of [at('absent.json'), at('config.json', 'Acme/Other'), '/models/local/config.json'])
    expect(await cache.match(absent)).toBeUndefined()
  await cache.put(at('x'), new Response('x'))
  expect(await cache.match(at('x'))).toBeUndefined()
})
