// What other tools downloaded is given to nobody unless the hub gives it to everybody, and nothing is shared unasked.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { type FakeHub, startFakeHub } from '@svc/testkit/fake-hub'
import { makeGguf } from '@svc/testkit/models'
import { expect, it, onTestFinished, vi } from 'vitest'
import { ok, QUIET_SWARM, type TestDaemon, testDaemon } from './support.ts'
import { put, putDocker, putHub, putLlama, putOllama, putRamaLama } from './tool-caches.ts'

vi.setConfig({ testTimeout: 60_000 })

type Put = (root: string, repo: string, bytes: Buffer) => void

/** Each layout with a repository of the hub, and how `svc adopt` finds it. */
const LAYOUTS: Readonly<Record<string, { readonly at: string; readonly put: Put }>> = {
  'llama.cpp': { at: 'flat', put: (root, repo, bytes) => putLlama(root, repo, 'm-q8_0.gguf', bytes) },
  Ollama: { at: 'ollama', put: (root, repo, bytes) => putOllama(root, `hf.co/${repo}`, 'Q8_0', bytes) },
  RamaLama: {
    at: 'ramalama',
    put: (root, repo, bytes) => putRamaLama(root, `huggingface/${repo}`, 'latest', 'm-q8_0.gguf', bytes)
  },
  'LM Studio': {
    at: '.lmstudio/models',
    put: (root, repo, bytes) => put(join(root, repo, 'm-q8_0.gguf'), bytes)
  }
}
/** Registries that nobody can be asked about. */
const UNNAMED: Readonly<Record<string, { readonly at: string; readonly put: Put }>> = {
  'Docker Model Runner': {
    at: 'docker',
    put: (root, repo, bytes) => putDocker(root, `${repo.toLowerCase()}:latest`, bytes)
  },
  'a private registry in Ollama': {
    at: 'ollama',
    put: (root, repo, bytes) => putOllama(root, `registry.example.com/${repo.toLowerCase()}`, 'latest', bytes)
  }
}

async function fakeHub(): Promise<FakeHub> {
  const hub = await startFakeHub()
  onTestFinished(() => hub.close())
  return hub
}

/** @param more of `[swarm]` */
const daemonOf = (hub: FakeHub, more: object = { seed_local: true }): Promise<TestDaemon> =>
  testDaemon({ fileConfig: { swarm: { ...QUIET_SWARM, ...more }, hub: { endpoint: hub.endpoint } } })

async function adopted(daemon: TestDaemon, ...args: string[]) {
  const { models } = JSON.parse(await ok(daemon, 'adopt', ...args, '--yes', '--json'))
  return models as { refs: string[]; withheld: { ref: string; fact: string; reason: string }[] }[]
}
const factsOf = (models: Awaited<ReturnType<typeof adopted>>) =>
  models.map(({ refs, withheld }) => [refs.length, ...withheld.map(({ fact }) => fact)])

it.each(Object.entries({ ...LAYOUTS, ...UNNAMED }))(
  'gated and private models in the cache of %s are withheld',
  async (_, { at, put }) => {
    const hub = await fakeHub()
    const daemon = await daemonOf(hub)
    const [gated, closed] = [makeGguf({ seed: 1 }), makeGguf({ seed: 2 })]
    hub.commit({ id: 'Acme/Gated', gated: 'auto', files: [{ path: 'm-q8_0.gguf', content: gated, lfs: true }] })
    hub.commit({ id: 'Acme/Closed', private: true, files: [{ path: 'm-q8_0.gguf', content: closed, lfs: true }] })
    const root = join(daemon.folder, at)
    put(root, 'Acme/Gated', gated)
    put(root, 'Acme/Closed', closed)
    const models = await adopted(daemon, root)
    expect(factsOf(models)).toEqual([
      [1, 'unknown-access'],
      [1, 'unknown-access']
    ])
    const [ref] = models[0]!.refs
    const text = await ok(daemon, 'why', ref!)
    expect(text).toContain('access: unknown')
    expect(text).toContain('svc private')
    // the owner may say otherwise
    await ok(daemon, 'private', ref!, '--off')
    expect(await ok(daemon, 'why', ref!)).not.toContain('withheld')
  }
)

it.each(Object.entries(LAYOUTS))('what the hub gives to everybody may be shared: %s', async (_, { at, put }) => {
  const hub = await fakeHub()
  const daemon = await daemonOf(hub)
  const [bytes, other] = [makeGguf({ seed: 3 }), makeGguf({ seed: 4 })]
  hub.commit({ id: 'Acme/Open', files: [{ path: 'm-q8_0.gguf', content: bytes, lfs: true }] })
  hub.commit({ id: 'Acme/Other', files: [{ path: 'm-q8_0.gguf', content: bytes, lfs: true }] })
  const root = join(daemon.folder, at)
  put(root, 'Acme/Open', bytes)
  put(root, 'Acme/Other', other)
  expect(factsOf(await adopted(daemon, root))).toEqual([[1], [1, 'unknown-access']])
})

it.each(Object.entries(LAYOUTS))(
  'without a network it is withheld until a later start asks: %s',
  async (_, { at, put }) => {
    const hub = await fakeHub()
    const daemon = await daemonOf(hub)
    const bytes = makeGguf({ seed: 5 })
    hub.commit({ id: 'Acme/Open', files: [{ path: 'm-q8_0.gguf', content: bytes, lfs: true }] })
    const root = join(daemon.folder, at)
    put(root, 'Acme/Open', bytes)
    hub.setFaults(() => ({ kind: 'refuse' }))
    const { code, stdout, stderr } = await daemon.svc('adopt', root, '--yes')
    expect([code, stderr]).toEqual([0, expect.stringContaining('the hub could not be asked')])
    await daemon.pause()
    hub.setFaults(undefined)
    await daemon.resume()
    await vi.waitFor(
      async () => expect(await ok(daemon, 'why', stdout.trim().split('\n').at(-1)!)).toContain('access: public'),
      50_000
    )
  }
)

it.each(['online', 'at a later start'])('small files that may leave must be the hub’s, too: %s', async (when) => {
  const hub = await fakeHub()
  const daemon = await daemonOf(hub)
  const template = { path: 'chat_template.jinja', content: Buffer.from('{{ messages }}') }
  const root = join(daemon.folder, '.lmstudio/models')
  const changes: Record<string, Record<string, string>> = {
    Same: { 'chat_template.jinja': '{{ messages }}' },
    // no loader reads it: it stays here
    Notes: { 'notes.txt': 'for me alone' },
    Changed: { 'chat_template.jinja': 'for me alone' },
    Beside: { 'generation_config.json': '{"for":"me alone"}' }
  }
  for (const [i, [name, beside]] of Object.entries(changes).entries()) {
    const weights = makeGguf({ seed: 60 + i })
    hub.commit({ id: `Acme/${name}`, files: [{ path: 'm-q8_0.gguf', content: weights, lfs: true }, template] })
    put(join(root, 'Acme', name, 'm-q8_0.gguf'), weights)
    for (const [file, text] of Object.entries(beside)) put(join(root, 'Acme', name, file), text)
  }
  if (when !== 'online') hub.setFaults(() => ({ kind: 'refuse' }))
  await adopted(daemon, root)
  if (when !== 'online') {
    await daemon.pause()
    hub.setFaults(undefined)
    await daemon.resume()
  }
  await vi.waitFor(async () => {
    for (const name of ['same', 'notes']) expect(await ok(daemon, 'why', `acme/${name}`)).toContain('access: public')
  }, 50_000)
  await vi.waitFor(() => {
    for (const name of ['Changed', 'Beside'])
      expect(hub.requests.some(({ url }) => url.includes(`Acme/${name}/tree`))).toBe(true)
  }, 50_000)
  await daemon.pause()
  await daemon.resume()
  for (const name of ['changed', 'beside']) expect(await ok(daemon, 'why', `acme/${name}`)).toContain('access: unknown')
  expect(await ok(daemon, 'why', 'acme/notes')).toContain('notes.txt: not shared')
})

it('small files that an adoption brings beside a model that others may have are asked about first', async () => {
  const hub = await fakeHub()
  const daemon = await daemonOf(hub)
  const root = join(daemon.folder, 'hub')
  for (const [seed, name, text] of [
    [81, 'Same', '{}'],
    [82, 'Own', '{"for":"me alone"}'],
    // the owner's word was about the files of then
    [83, 'Decided', '{"for":"me alone"}']
  ] as const) {
    const gguf = { path: 'm-q8_0.gguf', content: makeGguf({ seed }), lfs: true }
    const beside = { path: 'generation_config.json', content: Buffer.from('{}') }
    const sha = hub.commit({ id: `Acme/${name}`, files: [gguf, beside] })
    await ok(daemon, 'import', 'hf', `Acme/${name}`)
    if (name === 'Decided') await ok(daemon, 'private', 'acme/decided', '--off')
    expect(await ok(daemon, 'why', `acme/${name.toLowerCase()}`)).toContain('access: public')
    putHub(root, `Acme/${name}`, { 'm-q8_0.gguf': gguf.content, 'generation_config.json': text }, sha)
  }
  hub.setFaults(() => ({ kind: 'refuse' }))
  await adopted(daemon, root)
  expect(await ok(daemon, 'why', 'acme/own')).toContain('access: unknown')
  expect(await ok(daemon, 'why', 'acme/decided')).toContain('withheld')
  await daemon.pause()
  hub.setFaults(undefined)
  await daemon.resume()
  await vi.waitFor(async () => expect(await ok(daemon, 'why', 'acme/same')).toContain('access: public'), 50_000)
  expect(await ok(daemon, 'why', 'acme/own')).toContain('access: unknown')
})

it('a plain import of a path in a cache counts as what the tool downloaded', async () => {
  const hub = await fakeHub()
  const daemon = await daemonOf(hub)
  const { folder } = daemon
  const seeds: Record<string, string> = {}
  const cached = (at: string, seed: number): void => {
    put(join(folder, at), makeGguf({ seed }))
    seeds[at] = `own/m${seed}`
  }
  cached('.lmstudio/models/Maker/Model/m-q8_0.gguf', 11)
  putLlama(join(folder, 'flat'), 'Acme/Flat', 'm-q8_0.gguf', makeGguf({ seed: 12 }))
  seeds['flat/Acme_Flat_m-q8_0.gguf'] = 'own/m12'
  cached(`hub/models--Acme--Tiny/snapshots/${'c'.repeat(40)}/m-q8_0.gguf`, 13)
  putDocker(join(folder, 'docker'), 'acme/x:latest', makeGguf({ seed: 14 }))
  cached(`docker/bundles/sha256/${'d'.repeat(64)}/model/m-q8_0.gguf`, 15)
  mkdirSync(join(folder, 'ollama/manifests'), { recursive: true })
  cached('ollama/blobs/m-q8_0.gguf', 16)
  cached('downloaded/m-q8_0.gguf', 17)
  put(join(folder, 'downloaded/.cache/huggingface/download/m-q8_0.gguf.metadata'), 'c\ne\n1\n')
  for (const [at, as] of Object.entries(seeds)) {
    const { code, stderr } = await daemon.svc('import', 'local', at, '--as', as)
    expect([at, code]).toEqual([at, 0])
    expect(stderr).toContain('svc private')
    expect([at, await ok(daemon, 'why', as)]).toEqual([at, expect.stringContaining('access: unknown')])
  }
  // a folder above a cache is no way around it, nor is `svc adopt` of it
  await ok(daemon, 'import', 'local', '.lmstudio', '--as', 'own/above')
  expect(await ok(daemon, 'why', 'own/above')).toContain('access: unknown')
  put(join(folder, '.lmstudio/models/Maker/Fresh/fresh-q8_0.gguf'), makeGguf({ seed: 18 }))
  const above = await adopted(daemon, '.lmstudio')
  expect(factsOf(above)).toEqual([
    [1, 'unknown-access'],
    [1, 'unknown-access']
  ])
})

it('a plain folder is the owner’s own', async () => {
  const daemon = await daemonOf(await fakeHub())
  put(join(daemon.folder, 'mine/tiny-q8_0.gguf'), makeGguf({ seed: 21 }))
  expect(factsOf(await adopted(daemon, 'mine'))).toEqual([[1]])
  await ok(daemon, 'import', 'local', 'mine', '--as', 'own/mine')
  expect(await ok(daemon, 'why', 'own/mine')).toContain('access: own')
})

it('where nobody answers, what adopt brings is private, unless --share says otherwise', async () => {
  const hub = await fakeHub()
  const daemon = await daemonOf(hub, {})
  const { folder } = daemon
  const files = { 'm-q8_0.gguf': makeGguf({ seed: 31 }) }
  const content = [{ path: 'm-q8_0.gguf', content: files['m-q8_0.gguf'], lfs: true }]
  const commit = hub.commit({ id: 'Acme/Open', files: content })
  putHub(join(folder, 'hub'), 'Acme/Open', files, commit)
  put(join(folder, 'mine/tiny-q8_0.gguf'), makeGguf({ seed: 32 }))
  for (const root of ['hub', 'mine']) {
    expect(factsOf(await adopted(daemon, root))).toEqual([[1, 'private']])
    const said = await daemon.svc('adopt', root)
    expect([said.code, said.stderr]).toEqual([0, expect.stringContaining('--share')])
  }
  put(join(folder, 'other/else-q8_0.gguf'), makeGguf({ seed: 33 }))
  expect(factsOf(await adopted(daemon, 'other', '--share'))).toEqual([[1]])
  expect((await daemon.svc('adopt', 'other', '--share', '--private')).code).toBe(2)
})

it.each([
  ['yes', []],
  ['no', ['private']]
])('at a terminal adopt asks like a local import; the answer %s counts', async (answer, facts) => {
  const daemon = await daemonOf(await fakeHub(), {})
  put(join(daemon.folder, 'mine/tiny-q8_0.gguf'), makeGguf({ seed: 41 }))
  const stdin = Object.assign(new PassThrough(), { isTTY: true as const })
  stdin.write('y\n')
  // the next question opens it again
  stdin.once('pause', () => stdin.write(`${answer}\n`))
  const ran = await daemon.svcWith(['adopt', 'mine'], { columns: 100, stdin })
  expect([ran.code, ran.stderr]).toEqual([0, expect.stringContaining('Share own models?')])
  const again = await adopted(daemon, 'mine')
  expect(factsOf(again)).toEqual([[1, ...facts]])
})
