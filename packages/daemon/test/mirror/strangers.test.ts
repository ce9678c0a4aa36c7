// Clients of the hub's mirror never act with the owner's rights: each test is one thing that they could do with them.
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { type FakeHub, startFakeHub } from '@svc/testkit/fake-hub'
import { lfsPointer } from '@svc/testkit/fake-hub-content'
import type { FakeTreeEntry } from '@svc/testkit/fake-hub-faults'
import { type FakeXet, startFakeXet } from '@svc/testkit/fake-xet'
import { makeGguf, makeSafetensors, seededBytes } from '@svc/testkit/models'
import { expect, onTestFinished, test, vi } from 'vitest'
import { Offload } from '../../../internal/state/src/offload/pool.ts'
import { BUILTIN_NETWORKS } from '../../src/app/networks.ts'
import { mergeConfig } from '../../src/config/config.ts'
import type { FileConfig } from '../../src/config/keys.ts'
import { type TestDaemon, temporaryFolder, testDaemon } from '../support/daemon.ts'

const Q4 = 'Model-Q4_K_M.gguf'
const Q8 = 'Model-Q8_0.gguf'
const gguf = (seed: number): Buffer => Buffer.concat([makeGguf({ seed }), seededBytes(200_000, seed)])

interface World {
  readonly hub: FakeHub
  readonly daemon: TestDaemon
  ask(path: string, options?: { host?: string; headers?: Record<string, string> }): Promise<Got>
  /** Names and quants that the owner sees. */
  names(): Promise<string[]>
  importHf(body: object): Promise<unknown>
}

interface Got {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
}

/** A mirror with a token for everything, in front of a hub. */
async function world(mirror: FileConfig['mirror'] = {}, xet?: FakeXet): Promise<World> {
  const hub = await startFakeHub({ tokens: ['good'], ...(xet && { xet }) })
  onTestFinished(() => hub.close())
  const folder = temporaryFolder()
  const config = mergeConfig(
    {
      swarm: { enabled: false },
      hub: { endpoint: hub.endpoint },
      mirror: { hub_addr: '127.0.0.1:0', on_demand: true, on_demand_allow: ['acme/*', 'now/*', 'old/*'], ...mirror }
    },
    { root: join(folder, 'root') },
    { SVC_HF_TOKEN: 'good' }
  )
  const daemon = await testDaemon({ folder, config, networks: { hub: BUILTIN_NETWORKS.hub! } })
  const address: string = JSON.parse(readFileSync(join(folder, 'runtime.json'), 'utf8')).hubMirrorAddress
  const ask: World['ask'] = async (path, options = {}) => {
    for (;;) {
      const got = await askOnce(address, path, options)
      if (got.status !== 429) return got
    }
  }
  const names = async (): Promise<string[]> =>
    (await daemon.get('/v1/models')).body.namespaces.flatMap(
      ({ ns, name, members }: { ns: string; name: string; members: { quant: string }[] }) =>
        members.map(({ quant }) => `${ns}/${name}:${quant}`)
    )
  const importHf = async (body: object): Promise<unknown> => {
    const started = await daemon.post('/v1/import/hf', { names: 'normalized', ...body })
    if (started.status !== 201) throw new Error(JSON.stringify(started.body))
    return (await daemon.finished(started.body)).state
  }
  return { hub, daemon, ask, names, importHf }
}

function askOnce(
  address: string,
  path: string,
  { host: localAddress = '127.0.0.1', headers = {} }: { host?: string; headers?: Record<string, string> }
): Promise<Got> {
  const [host, port] = address.split(':')
  return new Promise((resolve, reject) => {
    const asked = request({ host, port, path, localAddress, headers, agent: false }, (response) => {
      const chunks: Buffer[] = []
      const done = (): void =>
        resolve({ status: response.statusCode!, headers: response.headers, body: Buffer.concat(chunks) })
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', done)
      response.on('error', done)
    })
    asked.on('error', reject).end()
    onTestFinished(() => void asked.destroy())
  })
}

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')
const shaOf = ({ body }: Got): unknown => JSON.parse(body.toString()).sha
const mainOf = async ({ ask }: World): Promise<unknown> => shaOf(await ask('/api/models/Acme/M'))

test('main follows the hub; a commit of a pull request is not fetched, and one of a branch gets no name', async () => {
  const it = await world()
  const main = it.hub.commit({ id: 'Acme/M', files: [{ path: Q4, content: gguf(1) }] })
  const pr = it.hub.commit({ id: 'Acme/M', branch: 'refs/pr/1', files: [{ path: Q4, content: gguf(2) }] })
  const dev = it.hub.commit({ id: 'Acme/M', branch: 'dev', files: [{ path: Q8, content: gguf(3) }] })
  for (const revision of [pr, encodeURIComponent('refs/pr/1')])
    expect((await it.ask(`/Acme/M/resolve/${revision}/${Q4}`)).status).toBe(404)
  for (const revision of [dev, 'dev'])
    expect((await it.ask(`/Acme/M/resolve/${revision}/${Q8}`)).body.equals(gguf(3))).toBe(true)
  await expect.poll(it.names).toEqual([expect.stringMatching(/^svc\/m\.[0-9a-f]{12}\.[0-9a-f]{8}:q8_0$/)])
  expect(await mainOf(it)).toBe(main)
  expect((await it.ask(`/Acme/M/resolve/main/${Q8}`)).status).toBe(404)
  expect((await it.ask(`/Acme/M/resolve/main/${Q4}`)).body.equals(gguf(1))).toBe(true)
  await expect.poll(it.names).toContain('acme/m:q4_k_m')
  // the owner sees models that strangers caused to be fetched, and removes them like any other
  const theirs = (await it.names()).find((name) => name.startsWith('svc/'))!.split(':')[0]
  expect((await it.daemon.call('DELETE', `/v1/models/${theirs}`)).status).toBe(200)
  expect(await it.names()).toEqual(['acme/m:q4_k_m'])
})

test('even if the owner allows any revision, main and the names do not change', async () => {
  const it = await world({ on_demand_revisions: 'any' })
  const main = it.hub.commit({ id: 'Acme/M', files: [{ path: Q4, content: gguf(1) }] })
  const pr = it.hub.commit({ id: 'Acme/M', branch: 'refs/pr/1', files: [{ path: Q4, content: gguf(2) }] })
  expect(await it.importHf({ repo: 'Acme/M' })).toBe('done')
  expect((await it.ask(`/Acme/M/resolve/${pr}/${Q4}`)).body.equals(gguf(2))).toBe(true)
  await expect.poll(it.names).toHaveLength(2)
  expect(await mainOf(it)).toBe(main)
  expect((await it.ask(`/Acme/M/resolve/main/${Q4}`)).body.equals(gguf(1))).toBe(true)
})

test('an import by commit answers for main only until the hub is reachable', async () => {
  const it = await world()
  const first = it.hub.commit({ id: 'Acme/M', files: [{ path: Q4, content: gguf(1) }] })
  expect(await it.importHf({ repo: 'Acme/M', revision: first })).toBe('done')
  const second = it.hub.commit({ id: 'Acme/M', files: [{ path: Q4, content: gguf(2) }] })
  it.hub.setFaults(() => ({ kind: 'status', status: 404, headers: { 'x-error-code': 'RepoNotFound' } }))
  expect(await mainOf(it)).toBe(first)
  it.hub.setFaults(undefined)
  // the answer about that repository is cached for a minute, so another one shows it
  const other = await world()
  const old = other.hub.commit({ id: 'Acme/M', files: [{ path: Q4, content: gguf(1) }] })
  expect(await other.importHf({ repo: 'Acme/M', revision: old })).toBe('done')
  other.hub.commit({ id: 'Acme/M', files: [{ path: Q4, content: gguf(2) }] })
  // a slow hub delays nobody
  await expect.poll(() => mainOf(other), { timeout: 30_000 }).toBe(second)
})

test('a model of the owner gets no quant from a stranger’s request', async () => {
  const it = await world()
  const files = [Q4, Q8].map((path, i) => ({ path, content: gguf(i) }))
  it.hub.commit({ id: 'Acme/M', files })
  expect(await it.importHf({ repo: 'Acme/M', quants: ['q4_k_m'] })).toBe('done')
  // while the hub is slow, the mirror shows what is here
  await expect.poll(async () => (await it.ask(`/Acme/M/resolve/main/${Q8}`)).body.equals(gguf(1))).toBe(true)
  await expect.poll(it.names).toHaveLength(2)
  expect(await it.names()).toContain('acme/m:q4_k_m')
  expect(await it.names()).not.toContain('acme/m:q8_0')
})

test('a repository that became gated after a lookup is neither served nor fetched', async () => {
  const it = await world()
  const config = Buffer.from('{"model_type":"llama","architectures":["LlamaForCausalLM"]}')
  const files = [
    { path: Q4, content: gguf(1) },
    { path: 'config.json', content: config }
  ]
  const commit = it.hub.commit({ id: 'Acme/M', files })
  expect((await it.ask(`/api/models/Acme/M/revision/${commit}`)).status).toBe(200)
  it.hub.commit({ id: 'Acme/M', files, gated: 'manual' })
  for (const revision of ['main', commit])
    for (const path of [Q4, 'config.json']) {
      const { status, body } = await it.ask(`/Acme/M/resolve/${revision}/${path}`)
      // absent, or what the hub refuses a stranger now
      expect([404, 503]).toContain(status)
      expect([body.includes(config), body.includes(gguf(1).subarray(0, 64))]).toEqual([false, false])
    }
  expect(await it.names()).toEqual([])
  const tokens = it.hub.requests.filter(({ headers }) => headers.authorization !== undefined)
  expect(tokens).toEqual([])
})

test('a private file is not sent because a listing names its digest', async () => {
  const it = await world()
  const secret = gguf(5)
  writeFileSync(join(it.daemon.folder, 'secret-q8_0.gguf'), secret)
  const body = { paths: [join(it.daemon.folder, 'secret-q8_0.gguf')], as: 'me/secret', private: true }
  await it.daemon.finished((await it.daemon.post('/v1/import/local', body)).body)
  it.hub.commit({ id: 'Acme/Liar', files: [{ path: Q8, content: gguf(6) }] })
  it.hub.commit({ id: 'Acme/Honest', files: [{ path: Q8, content: secret }] })
  const lie = (entries: FakeTreeEntry[]): unknown => {
    const { oid, pointerSize } = lfsPointer(sha256(secret), secret.length)
    return entries.map((entry) => ({
      ...entry,
      oid,
      size: secret.length,
      lfs: { oid: sha256(secret), size: secret.length, pointerSize }
    }))
  }
  it.hub.setFaults(({ stage, url }) =>
    stage === 'tree' && url.includes('Liar') ? { kind: 'tree', edit: lie } : undefined
  )
  const got = await it.ask(`/Acme/Liar/resolve/main/${Q8}`)
  expect(got.body.equals(secret)).toBe(false)
  expect(await it.names()).toEqual(['me/secret:q8_0'])
  // if the hub has the same bytes for everybody, they come from there
  const before = it.hub.bytesSent.get(Q8) ?? 0
  expect((await it.ask(`/Acme/Honest/resolve/main/${Q8}`)).body.equals(secret)).toBe(true)
  expect(it.hub.bytesSent.get(Q8)! - before).toBeGreaterThanOrEqual(secret.length)
})

test('a redirect does not lead to a repository that is not allowed or private', async () => {
  const it = await world()
  it.hub.commit({ id: 'Evil/M', formerId: 'Acme/M', files: [{ path: Q4, content: gguf(1) }] })
  it.hub.commit({ id: 'Now/M', formerId: 'Old/M', files: [Q4, Q8].map((path, i) => ({ path, content: gguf(i) })) })
  expect((await it.ask(`/Acme/M/resolve/main/${Q4}`)).status).toBe(404)
  expect(await it.importHf({ repo: 'Now/M', quants: ['q4_k_m'], private: true })).toBe('done')
  for (const name of ['Now/M', 'Old/M'])
    for (const path of [Q4, Q8]) expect((await it.ask(`/${name}/resolve/main/${path}`)).status).toBe(404)
  expect(it.hub.bytesSent.get(Q8)).toBeUndefined()
  expect(await it.names()).toEqual(['now/m:q4_k_m'])
})

test('a private model is not looked up under its earlier name', async () => {
  const it = await world()
  it.hub.commit({ id: 'Old/N', files: [Q4, Q8].map((path, i) => ({ path, content: gguf(i) })) })
  expect(await it.importHf({ repo: 'Old/N', quants: ['q4_k_m'], private: true })).toBe('done')
  it.hub.rename('Old/N', 'Now/N')
  expect((await it.ask(`/Old/N/resolve/main/${Q8}`)).status).toBe(404)
  expect(it.hub.bytesSent.get(Q8)).toBeUndefined()
})

test('a file fetched for a stranger is not sent if its repository became private meanwhile', async () => {
  const it = await world()
  it.hub.commit({ id: 'Acme/M', files: [{ path: Q4, content: gguf(1) }] })
  expect(await it.importHf({ repo: 'Acme/M' })).toBe('done')
  const config = Buffer.from('{"model_type":"llama"}')
  const later = it.hub.commit({
    id: 'Acme/M',
    files: [
      { path: Q8, content: gguf(2) },
      { path: 'config.json', content: config }
    ]
  })
  const asked = Promise.withResolvers<void>()
  let isKept = false
  it.hub.setFaults(({ path }) => {
    if (path !== 'config.json' || isKept) return undefined
    asked.resolve()
    return { kind: 'status', status: 503 }
  })
  const answer = it.ask(`/Acme/M/resolve/${later}/config.json`)
  await asked.promise
  await it.daemon.call('PUT', '/v1/private', { body: { ref: 'svc:///acme/m:q4_k_m', private: true } })
  isKept = true
  const { status, body } = await answer
  expect(body.includes(config)).toBe(false)
  expect(status).toBe(404)
})

test('one host that asks for four models delays neither another host nor the owner', async () => {
  const it = await world()
  const slow = [1, 2, 3, 4].map((i) => `slow${i}-q8_0.gguf`)
  for (const path of slow)
    it.hub.commit({ id: `Acme/${path.slice(0, 5)}`, files: [{ path, content: gguf(Number(path[4])) }] })
  it.hub.commit({ id: 'Acme/Other', files: [{ path: Q8, content: gguf(7) }] })
  it.hub.commit({ id: 'Own/Model', files: [{ path: Q4, content: gguf(3) }] })
  const stalled = new Set<string>()
  it.hub.setFaults(({ stage, path = '', headers }) => {
    // the first byte shows whether it is gated
    if (stage !== 'cdn' || !slow.includes(path) || headers.range === 'bytes=0-0') return undefined
    stalled.add(path)
    return { kind: 'stall', afterBytes: 1_000 }
  })
  for (const path of slow)
    void it.ask(`/Acme/${path.slice(0, 5)}/resolve/main/${path}`, { headers: { range: 'bytes=0-0' } }).catch(() => {})
  await expect.poll(() => stalled.size).toBe(4)
  expect(await it.importHf({ repo: 'Own/Model' })).toBe('done')
  const other = await it.ask(`/Acme/Other/resolve/main/${Q8}`, { host: '127.0.0.2' })
  expect(other.body.equals(gguf(7))).toBe(true)
})

test('long listings of strangers and of the owner are planned in separate threads', async () => {
  const it = await world()
  const many = (seed: number) => [
    { path: Q8, content: gguf(seed) },
    ...Array.from({ length: 505 }, (_, i) => ({ path: `imatrix-${i}.gguf`, content: Buffer.from('same') }))
  ]
  it.hub.commit({ id: 'Acme/Long', files: many(1) })
  it.hub.commit({ id: 'Own/Long', files: many(2) })
  const ran = vi.spyOn(Offload.prototype, 'call')
  onTestFinished(() => ran.mockRestore())
  const threads = (): Set<unknown> => {
    const planning = ran.mock.contexts.filter((_, i) => ['recognize', 'plan'].includes(ran.mock.calls[i]![0]))
    ran.mockClear()
    return new Set(planning)
  }
  expect((await it.ask(`/Acme/Long/resolve/main/${Q8}`)).body.equals(gguf(1))).toBe(true)
  const strangers = threads()
  expect((await it.daemon.post('/v1/import/hf/plan', { repo: 'Own/Long' })).status).toBe(200)
  const owners = threads()
  expect([strangers.size, owners.size]).toEqual([1, 1])
  expect([...owners].some((each) => strangers.has(each))).toBe(false)
})

test('listings and plans count towards the daily budget, also refused ones; beyond it the hub is not asked', async () => {
  const it = await world({ on_demand_bytes: 200_000 })
  const names = Array.from({ length: 400 }, (_, i) => ({
    path: `${'n'.repeat(100)}${i}.md`,
    content: Buffer.from('x')
  }))
  const files = [{ path: Q8, content: gguf(1) }, ...names]
  // only listings are read, and no file
  for (const repo of ['A', 'B', 'C', 'D', 'E', 'F', 'G', 'H']) it.hub.commit({ id: `Acme/${repo}`, files })
  const statuses: number[] = []
  for (const repo of ['A', 'B', 'C', 'D', 'E', 'F', 'G', 'H']) {
    const asked = it.hub.requests.length
    statuses.push((await it.ask(`/api/models/Acme/${repo}`)).status)
    expect(it.hub.requests.length === asked).toBe(statuses.at(-1) === 507)
  }
  expect(statuses[0]).toBe(200)
  expect(statuses.at(-1)).toBe(507)
})

test('every file of a snapshot is served or named as left out; a repository without usable weights does not exist', async () => {
  const it = await world()
  const small = [
    { path: 'config.json', content: Buffer.from('{"model_type":"llama"}') },
    { path: 'generation_config.json', content: Buffer.from('{"temperature":0.6}') },
    { path: 'pytorch_model.bin', content: seededBytes(1_100_000, 5) }
  ]
  const large = { path: 'tf_model.h5', content: { seed: 6, sizeBytes: (64 << 20) + 1 } }
  it.hub.commit({ id: 'Acme/M', files: [{ path: Q4, content: gguf(1) }, ...small, large] })
  const info = await it.ask('/api/models/Acme/M')
  expect(info.headers['x-svc-left-out']).toBe('1')
  const { siblings } = JSON.parse(info.body.toString()) as { siblings: { rfilename: string }[] }
  expect(siblings.map(({ rfilename }) => rfilename)).toEqual([Q4, ...small.map(({ path }) => path)])
  for (const { path, content } of small)
    expect((await it.ask(`/Acme/M/resolve/main/${path}`)).body.equals(content)).toBe(true)
  const refused = await it.ask('/Acme/M/resolve/main/tf_model.h5')
  expect([refused.status, refused.headers['x-error-code']]).toEqual([404, 'EntryNotFound'])
  expect(refused.headers['x-error-message']).toContain('tf_model.h5')
  it.hub.commit({ id: 'Acme/Pickle', files: small })
  for (const path of ['/api/models/Acme/Pickle', '/Acme/Pickle/resolve/main/config.json'])
    expect(await it.ask(path)).toMatchObject({ status: 404, headers: { 'x-error-code': 'RepoNotFound' } })
})

test("a file that the owner's import left out is fetched for a client", async () => {
  const it = await world()
  const left = { path: 'pytorch_model.bin', content: seededBytes(1_100_000, 7) }
  it.hub.commit({ id: 'Acme/M', files: [{ path: Q4, content: gguf(1) }, left] })
  expect(await it.importHf({ repo: 'Acme/M' })).toBe('done')
  await expect
    .poll(async () => (await it.ask(`/Acme/M/resolve/main/${left.path}`)).body.equals(left.content))
    .toBe(true)
})

test("a client's download is not assembled from the owner's blobs, even if the hub offers a reconstruction", async () => {
  const xet = await startFakeXet({ packing: () => 'plain' })
  onTestFinished(() => xet.close())
  const it = await world({}, xet)
  const [old, now] = [1, 2].map((seed) => Buffer.concat([makeGguf({ seed }), seededBytes(9 << 20, 3)]))
  it.hub.commit({ id: 'Acme/M', files: [{ path: Q8, content: old! }] })
  await it.importHf({ repo: 'Acme/M' })
  const second = it.hub.commit({ id: 'Acme/M', files: [{ path: Q8, content: now! }] })
  const sent = it.hub.bytesSent.get(Q8)!
  expect((await it.ask(`/Acme/M/resolve/${second}/${Q8}`)).body.equals(now!)).toBe(true)
  expect(it.hub.bytesSent.get(Q8)! - sent).toBeGreaterThanOrEqual(now!.length)
  expect(xet.requests).toEqual([])
})

test('a file of another form of the model is fetched as that form', async () => {
  const it = await world()
  const config = { path: 'config.json', content: Buffer.from('{"model_type":"mistral"}') }
  const content = (seed: number): Buffer => makeSafetensors({ seed })
  const weights = ['model.safetensors', 'consolidated.safetensors'].map((path, i) => ({
    path,
    content: content(i),
    lfs: true
  }))
  it.hub.commit({ id: 'Acme/M', files: [config, ...weights] })
  for (const [i, { path }] of weights.entries())
    expect((await it.ask(`/Acme/M/resolve/main/${path}`)).body.equals(content(i))).toBe(true)
  await expect.poll(it.names).toHaveLength(2)
  expect((await it.names()).map((name) => name.split('.').at(-1)).sort()).toContain('consolidated')
})
