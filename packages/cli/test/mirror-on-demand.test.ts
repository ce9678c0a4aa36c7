// Models that clients request from the hub mirror before they are here: fetched from a hub on loopback, for the hub's own client and for
// the requests of other programs.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { downloadFileToCacheDir, listFiles, modelInfo, snapshotDownload } from '@huggingface/hub'
import { type FakeHub, startFakeHub } from '@svc/testkit/fake-hub'
import { scriptedFaults } from '@svc/testkit/fake-hub-faults'
import { makeGguf, makeModelFolder, seededBytes } from '@svc/testkit/models'
import { until } from '@svc/testkit/until'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { laterUndo, type TestDaemon, testDaemon } from './support.ts'

const undo = laterUndo()
const GGUFS = 'Acme/Model-7B-GGUF'
const Q4 = 'Model-7B-Q4_K_M.gguf'
const Q8 = 'Model-7B-Q8_0.gguf'
const README = Buffer.from('# model')
const FOLDER = 'Acme/Tiny'
const GROWING = 'Acme/Growing-GGUF'
const SIZE_BYTES = 8 << 20
let hub: FakeHub
let daemon: TestDaemon
let address: string
let commit: string
const content = new Map<string, Buffer>()

/** Stands in for the hub's CDN: sends the first half of a file, and holds the second back until `goOn`. */
const growing = { bytes: Buffer.alloc(0), goOn: () => undefined as void, isHeld: new Promise<void>(() => undefined) }
const cdn = createServer((asked, response) => {
  const [, first = '0', last = ''] = /bytes=(\d+)-(\d*)/.exec(asked.headers.range ?? '') ?? []
  const end = last === '' ? growing.bytes.length : Number(last) + 1
  const part = growing.bytes.subarray(Number(first), end)
  response.writeHead(asked.headers.range === undefined ? 200 : 206, {
    'content-length': part.length,
    ...(asked.headers.range && { 'content-range': `bytes ${first}-${end - 1}/${growing.bytes.length}` })
  })
  const freely = Math.max(0, Math.min(part.length, (growing.bytes.length >> 1) - Number(first)))
  if (freely > 0) response.write(part.subarray(0, freely))
  void (freely === part.length ? Promise.resolve() : growing.isHeld).then(() => response.end(part.subarray(freely)))
})

beforeAll(async () => {
  growing.bytes = Buffer.concat([makeGguf({ seed: 7 }), seededBytes(SIZE_BYTES, 8)])
  growing.isHeld = new Promise((resolve) => (growing.goOn = resolve))
  await new Promise<void>((resolve) => cdn.listen(0, '127.0.0.1', resolve))
  undo.later(() => void cdn.close())
  const cdnPort = (cdn.address() as AddressInfo).port
  hub = await startFakeHub({
    tokens: ['good'],
    cdnAddress: (path) => (path === 'growing-q8_0.gguf' ? `http://127.0.0.1:${cdnPort}/x` : (undefined as never))
  })
  undo.later(() => hub.close())
  content.set(Q4, makeGguf({ seed: 1 })).set(Q8, makeGguf({ seed: 2 }))
  const gguf = [...content].map(([path, bytes]) => ({ path, content: bytes }))
  const beside = [
    { path: 'README.md', content: README },
    // not part of a model, and too large for a small file
    { path: 'tf_model.h5', content: { seed: 12, sizeBytes: (64 << 20) + 1 } }
  ]
  commit = hub.commit({ id: GGUFS, files: [...gguf, ...beside] })
  hub.commit({ id: GROWING, files: [{ path: 'growing-q8_0.gguf', content: growing.bytes }] })
  hub.commit({ id: 'Acme/Gated', gated: 'manual', files: gguf })
  hub.commit({ id: 'Acme/Hidden', private: true, files: gguf })
  hub.commit({ id: 'Other/Model', files: gguf })
  hub.commit({ id: 'Acme/Wrong-GGUF', files: [{ path: 'wrong-q8_0.gguf', content: seededBytes(SIZE_BYTES, 9) }] })
  hub.commit({ id: 'Acme/Large-GGUF', files: [{ path: 'large-q8_0.gguf', content: seededBytes(60 << 20, 10) }] })
  hub.setFaults(
    scriptedFaults([
      { stage: 'cdn', path: 'wrong-q8_0.gguf', fault: { kind: 'wrong-bytes', atByte: 100_000 } },
      { stage: 'resolve', path: 'wrong-q8_0.gguf', fault: { kind: 'wrong-bytes', atByte: 100_000 } }
    ])
  )
  const { mergeConfig } = await import('../../daemon/src/config/config.ts')
  daemon = await testDaemon({}, undo.later)
  await daemon.pause()
  const config = mergeConfig(
    {
      swarm: { enabled: false },
      hub: { endpoint: hub.endpoint },
      mirror: {
        hub_addr: '127.0.0.1:0',
        names: ['Store.example'],
        on_demand: true,
        on_demand_allow: ['acme/*'],
        on_demand_bytes: 50 << 20
      }
    },
    { root: daemon.root },
    // a token that may read everything does not make the mirror give away more
    { SVC_HF_TOKEN: 'good' }
  )
  daemon = await testDaemon({ folder: daemon.folder, config }, undo.later)
  address = JSON.parse(readFileSync(join(daemon.folder, 'runtime.json'), 'utf8')).hubMirrorAddress
  const names = makeModelFolder(join(daemon.folder, 'Tiny'), { ggufs: {} })
  hub.commit({
    id: FOLDER,
    files: names.map((path) => ({ path, content: readFileSync(join(daemon.folder, 'Tiny', path)) }))
  })
})
afterAll(undo.all)

interface Got {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
  /** The connection broke before the end. */
  readonly isCut: boolean
}

interface Asked {
  readonly method?: string
  readonly headers?: Record<string, string>
  /** Called for each chunk of an answer that is the file. */
  readonly onData?: () => void
}

/** Retries as long as it is told to, as clients of the hub do. */
async function ask(path: string, asked: Asked = {}): Promise<Got> {
  let got = await askOnce(path, asked)
  const mayBeOver = async (): Promise<void> => {
    expect(Number(got.headers['retry-after'])).toBeGreaterThan(0)
    got = await askOnce(path, asked)
  }
  await until(() => got.status !== 429, mayBeOver)
  return got
}

function askOnce(path: string, { onData, ...options }: Asked): Promise<Got> {
  const [host, port] = address.split(':')
  return new Promise((resolve, reject) => {
    request({ host, port, path, agent: false, ...options }, (response) => {
      const chunks: Buffer[] = []
      const done = (isCut: boolean): void =>
        resolve({ status: response.statusCode!, headers: response.headers, body: Buffer.concat(chunks), isCut })
      response.on('data', (chunk: Buffer) => {
        chunks.push(chunk)
        if (response.statusCode! < 300) onData?.()
      })
      response.on('end', () => done(false))
      response.on('error', () => done(true))
    })
      .on('error', reject)
      .end()
  })
}

async function imports(): Promise<readonly { readonly state: string; readonly bytesDone?: number }[]> {
  const { stdout } = await daemon.svc('jobs', '--json')
  return JSON.parse(stdout).jobs.filter(({ kind }: { kind: string }) => kind === 'import-hf')
}
const importsOf = async (): Promise<number> => (await imports()).length
/** The bytes of running imports. */
const bytesOfImports = async (): Promise<number> =>
  (await imports()).reduce((sum, { state, bytesDone = 0 }) => (state === 'fetching' ? sum + bytesDone : sum), 0)
const repo = (name: string) => ({ type: 'model' as const, name })
const at = () => ({ hubUrl: `http://${address}` })

describe('a repository that is not here', () => {
  it('is listed from the hub, and a HEAD request fetches nothing', async () => {
    expect(await modelInfo({ name: GGUFS, ...at(), additionalFields: ['sha'] })).toMatchObject({ sha: commit })
    const files = []
    for await (const file of listFiles({ repo: repo(GGUFS), ...at(), recursive: true })) files.push(file)
    const weights = [Q4, Q8].map((path) => ({ path, size: content.get(path)!.length }))
    expect(files).toMatchObject([...weights, { path: 'README.md', size: README.length }])
    const head = await ask(`/${GGUFS}/resolve/main/${Q4}`, { method: 'HEAD' })
    const sha256 = createHash('sha256').update(content.get(Q4)!).digest('hex')
    expect(head).toMatchObject({
      status: 200,
      headers: { etag: `"${sha256}"`, 'x-repo-commit': commit, 'content-length': `${content.get(Q4)!.length}` }
    })
    expect(await ask(`/${GGUFS}/resolve/main/${Q4}`, { headers: { 'if-none-match': `"${sha256}"` } })).toMatchObject({
      status: 304
    })
    expect(hub.bytesSent.get(Q4) ?? 0).toBeLessThan(2)
    expect(await importsOf()).toBe(0)
  })

  it('is imported once for all clients, and only the artifact of the requested file', async () => {
    const before = hub.bytesSent.get(Q4) ?? 0
    const all = await Promise.all(Array.from({ length: 20 }, () => ask(`/${GGUFS}/resolve/main/${Q4}`)))
    for (const { status, body, isCut } of all)
      expect([status, isCut, body.equals(content.get(Q4)!)]).toEqual([200, false, true])
    expect(hub.bytesSent.get(Q4)! - before).toBe(content.get(Q4)!.length)
    expect(hub.bytesSent.get(Q8) ?? 0).toBeLessThan(2)
    await expect
      .poll(async () => (await daemon.svc('ls', '--json')).stdout)
      .toContain('"ref":"acme/model-7b-gguf:q4_k_m"')
    expect(await importsOf()).toBe(1)
    // what is here comes from the store, the rest is still offered
    const files = []
    for await (const file of listFiles({ repo: repo(GGUFS), ...at() })) files.push(file.path)
    expect(files).toEqual([Q4, Q8, 'README.md'])
    expect((await ask(`/${GGUFS}/resolve/main/README.md`)).body.equals(README)).toBe(true)
    const path = await downloadFileToCacheDir({
      repo: repo(GGUFS),
      path: Q8,
      cacheDir: join(daemon.folder, 'cache'),
      ...at()
    })
    expect(readFileSync(path).equals(content.get(Q8)!)).toBe(true)
  })

  it('is loaded whole by the hub’s own client', async () => {
    const snapshot = await snapshotDownload({ repo: repo(FOLDER), cacheDir: join(daemon.folder, 'cache'), ...at() })
    for (const name of ['config.json', 'tokenizer.json', 'model.safetensors'])
      expect(readFileSync(join(snapshot, name)).equals(readFileSync(join(daemon.folder, 'Tiny', name)))).toBe(true)
  })

  it('is resolved as llama.cpp does for -hf: branches, the tree of the commit, then the file, resumed', async () => {
    const headers = { 'user-agent': 'llama-cpp/b1', accept: 'application/json' }
    const json = async (path: string) => JSON.parse((await ask(path, { headers })).body.toString())
    const { branches } = await json(`/api/models/${GGUFS}/refs`)
    expect(branches).toEqual([expect.objectContaining({ name: 'main', targetCommit: commit })])
    const tree: { type: string; path: string; lfs: { oid: string } }[] = await json(
      `/api/models/${GGUFS}/tree/${commit}?recursive=true`
    )
    const file = tree.find(({ type, path }) => type === 'file' && path === Q4)!
    const path = `/${GGUFS}/resolve/${commit}/${file.path}`
    const head = await ask(path, { method: 'HEAD', headers })
    expect(head).toMatchObject({ status: 200, headers: { etag: `"${file.lfs.oid}"`, 'accept-ranges': 'bytes' } })
    const rest = await ask(path, { headers: { ...headers, range: 'bytes=1000-' } })
    expect([rest.status, rest.body.equals(content.get(Q4)!.subarray(1000))]).toEqual([206, true])
    expect(await ask('/api/models/acme/absent/refs', { headers })).toMatchObject({ status: 404 })
  })

  it('tells older ones of llama.cpp which file a tag is', async () => {
    const headers = { 'user-agent': 'llama-cpp', accept: 'application/json' }
    const of = async (tag: string) => {
      const { status, body } = await ask(`/v2/${GGUFS}/manifests/${tag}`, { headers })
      return status === 200 ? JSON.parse(body.toString()) : status
    }
    const bytes = content.get(Q8)!
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    const lfs = { sha256, size: bytes.length, pointerSize: 134 }
    expect((await of('q8_0')).ggufFile).toMatchObject({ rfilename: Q8, size: bytes.length, lfs })
    expect((await of('Q4_K_M')).ggufFile.rfilename).toBe(Q4)
    expect((await of('latest')).ggufFile.rfilename).toBe(Q4)
    expect([await of('q2_k'), (await ask('/v2/acme/absent/manifests/latest')).status]).toEqual([404, 404])
  })

  it('is sent only after it is verified as a whole, also to clients that resume', async () => {
    let seen = 0
    const onData = (): void => void seen++
    const path = `/${GROWING}/resolve/main/growing-q8_0.gguf`
    const whole = ask(path, { onData })
    const resumed = ask(path, { headers: { range: 'bytes=1000-' }, onData })
    // the hub sends no more than half
    await expect.poll(async () => (await bytesOfImports()) > growing.bytes.length / 4, { timeout: 60_000 }).toBe(true)
    expect(seen).toBe(0)
    growing.goOn()
    expect(await whole).toMatchObject({ status: 200, isCut: false })
    expect((await whole).body.equals(growing.bytes)).toBe(true)
    expect(await resumed).toMatchObject({ status: 206, isCut: false })
    expect((await resumed).body.equals(growing.bytes.subarray(1000))).toBe(true)
  })

  it('is never sent if the hub sends bytes other than those it lists', async () => {
    const got = await ask('/Acme/Wrong-GGUF/resolve/main/wrong-q8_0.gguf')
    // cut, if its head was sent before it failed
    expect(got.status === 503 || (got.isCut && got.body.length === 0)).toBe(true)
    expect(await ask('/Acme/Wrong-GGUF/resolve/main/wrong-q8_0.gguf')).toMatchObject({
      status: 503,
      headers: { 'retry-after': '30' }
    })
  })
})

it('answers to the names that the configuration lists, with any port', async () => {
  const status = async (host: string) => (await ask('/api/models/acme/absent', { headers: { host } })).status
  expect([await status('store.example'), await status('STORE.example:80'), await status(address)]).toEqual([
    404, 404, 404
  ])
  expect([await status('other.example'), await status('store.example.evil')]).toEqual([421, 421])
})

describe('requests that import nothing', () => {
  it('a repository that does not exist: a cached 404', async () => {
    const absent = () => ask('/api/models/acme/absent')
    expect(await absent()).toMatchObject({ status: 404, headers: { 'x-error-code': 'RepoNotFound' } })
    const before = hub.requests.length
    expect(await absent()).toMatchObject({ status: 404 })
    expect(hub.requests.length).toBe(before)
  })

  it.each([
    ['gated', '/api/models/Acme/Gated'],
    ['gated, by a file', `/Acme/Gated/resolve/main/${Q4}`],
    ['private', '/api/models/Acme/Hidden'],
    ['private, by a file', `/Acme/Hidden/resolve/main/${Q4}`],
    ['not in the list of those that may be', `/Other/Model/resolve/main/${Q4}`],
    ['not a name', '/api/models/Acme/..']
  ])('a repository that is %s', async (_, path) => {
    const before = await importsOf()
    expect(await ask(path)).toMatchObject({ status: 404 })
    expect(await importsOf()).toBe(before)
  })

  it('a repository outside the allow list: the hub is not asked', () => {
    expect(hub.requests.filter(({ url }) => url.includes('Other'))).toEqual([])
  })

  it('a large file that is not part of a model', async () => {
    expect(await ask(`/${GGUFS}/resolve/main/tf_model.h5`)).toMatchObject({
      status: 404,
      headers: { 'x-error-code': 'EntryNotFound', 'x-error-message': expect.stringContaining('tf_model.h5') }
    })
  })

  it('more than the daily budget', async () => {
    expect(await ask('/Acme/Large-GGUF/resolve/main/large-q8_0.gguf')).toMatchObject({ status: 507 })
  })

  it('a model that its owner has made private meanwhile', async () => {
    expect(await ask(`/${GGUFS}/resolve/main/${Q4}`, { method: 'HEAD' })).toMatchObject({ status: 200 })
    await daemon.svc('private', 'acme/model-7b-gguf:q4_k_m')
    expect(await ask(`/${GGUFS}/resolve/main/${Q4}`, { method: 'HEAD' })).toMatchObject({ status: 404 })
    await daemon.svc('private', '--off', 'acme/model-7b-gguf:q4_k_m')
    expect(await ask(`/${GGUFS}/resolve/main/${Q4}`, { method: 'HEAD' })).toMatchObject({ status: 200 })
  })

  it("under another artifact's name: it is imported into the strangers' namespace", async () => {
    const digests = async () =>
      JSON.parse((await daemon.svc('ls', '--json')).stdout).models.flatMap(
        ({ ref, manifest }: { ref: string; manifest: string }) => (ref.startsWith('svc/') ? [] : [manifest])
      )
    const before = await digests()
    const files = [{ path: Q4, content: makeGguf({ seed: 3 }) }]
    const other = hub.commit({ id: GGUFS, files })
    expect((await ask(`/${GGUFS}/resolve/${other}/${Q4}`)).body.equals(files[0]!.content)).toBe(true)
    expect(await digests()).toEqual(before)
    expect((await ask(`/${GGUFS}/resolve/${commit}/${Q4}`)).body.equals(content.get(Q4)!)).toBe(true)
  })
})
