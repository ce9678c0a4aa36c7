// The daemon as a mirror: the hub's own client, another daemon and skopeo load from it what was imported from a hub that is gone.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { downloadFileToCacheDir, fileExists, listFiles, modelInfo, snapshotDownload } from '@huggingface/hub'
import { startFakeHub } from '@svc/testkit/fake-hub'
import { makeGguf, makeModelFolder } from '@svc/testkit/models'
import { haveSkopeo, skopeo } from '@svc/testkit/registry'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { laterUndo, type TestDaemon, testDaemon } from './support.ts'

vi.setConfig({ testTimeout: 60_000 })
const undo = laterUndo()
const REPO = 'Acme/Model-7B-GGUF'
const WEIGHTS = 'Model-7B-Q4_K_M.gguf'
const TOKEN = 'a token of the mirror'
const FOLDER = 'Acme/Tiny'
let daemon: TestDaemon
let hubAddress: string
let ociAddress: string
let metricsAddress: string
let commit: string
let tiny: string
const content = new Map<string, Buffer>()

beforeAll(async () => {
  const hub = await startFakeHub({ tokens: ['good'] })
  content.set(WEIGHTS, makeGguf({ seed: 1 }))
  const gguf = [...content].map(([path, bytes]) => ({ path, content: bytes }))
  commit = hub.commit({ id: REPO, files: [...gguf, { path: 'README.md', content: Buffer.from('# model') }] })
  daemon = await testDaemon(
    {
      fileConfig: {
        swarm: { enabled: false },
        hub: { endpoint: hub.endpoint },
        mirror: { hub_addr: '127.0.0.1:0', oci_addr: '127.0.0.1:0' },
        metrics: { addr: '127.0.0.1:0' }
      }
    },
    undo.later
  )
  const folder = join(daemon.folder, 'Tiny')
  const names = makeModelFolder(folder, { ggufs: {} })
  tiny = hub.commit({ id: FOLDER, files: names.map((path) => ({ path, content: readFileSync(join(folder, path)) })) })
  hub.commit({ id: 'Acme/Secret', files: gguf })
  for (const args of [[REPO], [FOLDER], ['Acme/Secret', '--private']])
    expect(await daemon.svc('import', 'hf', ...args)).toMatchObject({ code: 0 })
  // from here on there is no hub but the mirror
  await hub.close()
  const facts = JSON.parse(readFileSync(join(daemon.folder, 'runtime.json'), 'utf8'))
  ;({ hubMirrorAddress: hubAddress, ociMirrorAddress: ociAddress, metricsAddress } = facts)
}, 60_000)
afterAll(undo.all)

interface Asked {
  readonly method?: string
  readonly headers?: Record<string, string>
  readonly body?: string
}

function ask(address: string, path: string, { method = 'GET', headers = {}, body: sent = '' }: Asked = {}) {
  const [host, port] = address.split(':')
  return new Promise<{ status: number; headers: Record<string, unknown>; body: string }>((resolve, reject) => {
    request({ host, port, path, method, headers, agent: false }, (response) => {
      let body = ''
      response.setEncoding('utf8').on('data', (text: string) => (body += text))
      response.on('end', () => resolve({ status: response.statusCode!, headers: response.headers, body }))
    })
      .on('error', reject)
      .end(sent)
  })
}

const manifest = async (ref: string): Promise<string> =>
  JSON.parse((await daemon.svc('resolve', ref, '--json')).stdout).manifestDigest

describe('the hub mirror', () => {
  const repo = (name: string) => ({ type: 'model' as const, name })
  const hub = () => ({ hubUrl: `http://${hubAddress}` })

  it('shows the hub client a repository under its own names, at the imported commit', async () => {
    const info = await modelInfo({ name: REPO, ...hub(), additionalFields: ['sha'] })
    expect(info).toMatchObject({ name: REPO, sha: commit })
    const files = []
    for await (const file of listFiles({ repo: repo(REPO), ...hub(), recursive: true })) files.push(file)
    expect(files).toMatchObject([
      { path: WEIGHTS, size: content.get(WEIGHTS)!.length, lfs: { oid: expect.any(String) } },
      { path: 'README.md' }
    ])
    expect(await fileExists({ repo: repo(REPO), path: WEIGHTS, ...hub() })).toBe(true)
    expect(await fileExists({ repo: repo(REPO), path: 'README.md', ...hub() })).toBe(true)
    expect(await fileExists({ repo: repo(REPO), path: 'config.json', ...hub() })).toBe(false)
  })

  it('gives it a file, and a whole snapshot with tokenizer and configuration', async () => {
    const cacheDir = join(daemon.folder, 'hub-cache')
    const path = await downloadFileToCacheDir({ repo: repo(REPO), path: WEIGHTS, cacheDir, ...hub() })
    expect(path).toContain(`/snapshots/${commit}/${WEIGHTS}`)
    expect(readFileSync(path).equals(content.get(WEIGHTS)!)).toBe(true)
    const snapshot = await snapshotDownload({ repo: repo(FOLDER), cacheDir, ...hub() })
    for (const name of ['config.json', 'tokenizer.json', 'model.safetensors'])
      expect(readFileSync(join(snapshot, name)).equals(readFileSync(join(daemon.folder, 'Tiny', name)))).toBe(true)
  })

  it('gives another daemon the same model', async () => {
    const other = await testDaemon({
      fileConfig: { swarm: { enabled: false }, hub: { endpoint: `http://${hubAddress}` } }
    })
    expect(await other.svc('import', 'hf', FOLDER)).toMatchObject({ code: 0 })
    const digestOf = async (each: TestDaemon) =>
      JSON.parse((await each.svc('resolve', 'acme/tiny', '--json')).stdout).manifestDigest
    expect(await digestOf(other)).toBe(await digestOf(daemon))
  })

  it('answers ranges, conditions and HEAD as the hub does', async () => {
    const path = `/${REPO}/resolve/main/${WEIGHTS}`
    const head = await ask(hubAddress, path, { method: 'HEAD' })
    const { etag } = head.headers as { etag: string }
    expect(head).toMatchObject({
      status: 200,
      body: '',
      headers: {
        etag: expect.stringMatching(/^"[0-9a-f]{64}"$/),
        'x-repo-commit': commit,
        'x-linked-etag': etag,
        'x-linked-size': `${content.get(WEIGHTS)!.length}`
      }
    })
    expect(await ask(hubAddress, path, { headers: { range: 'bytes=0-3' } })).toMatchObject({
      status: 206,
      body: 'GGUF'
    })
    expect(await ask(hubAddress, path, { headers: { 'if-none-match': etag } })).toMatchObject({ status: 304 })
    const small = await ask(hubAddress, `/${FOLDER}/resolve/${tiny}/config.json`, { headers: { range: 'bytes=0-0' } })
    expect(small).toMatchObject({
      status: 206,
      body: '{',
      headers: { etag: expect.stringMatching(/^"[0-9a-f]{40}"$/) }
    })
  })

  it.each([
    ['a private model', '/api/models/Acme/Secret'],
    ['a file of a private model', `/Acme/Secret/resolve/main/${WEIGHTS}`],
    ['a repository that is not here', '/api/models/acme/absent'],
    ['another commit', `/api/models/${REPO}/revision/${'0'.repeat(40)}`],
    ['a path that climbs out', `/${REPO}/resolve/main/..%2F..%2Fetc/passwd`],
    ['a malformed escape', `/${REPO}/resolve/main/%zz`],
    ['the root', '/']
  ])('does not have %s', async (_, path) => {
    expect(await ask(hubAddress, path)).toMatchObject({ status: 404 })
  })

  it.each([
    ['a page of another site', { headers: { origin: 'http://evil.example' } }, 403],
    ['an image of another site, which sends no origin', { headers: { referer: 'http://evil.example/x' } }, 403],
    ['a page of this site on another port', { headers: { 'sec-fetch-site': 'same-site' } }, 403],
    ['a page without an origin', { headers: { origin: 'null' } }, 403],
    ['another name for this address', { headers: { host: 'evil.example' } }, 421],
    ['writers', { method: 'PUT' }, 405],
    ['a body that is none', { method: 'POST', headers: { 'content-type': 'application/json' } }, 400],
    ['a list of too many paths', { method: 'POST', body: 'paths=x&'.repeat(20_000) }, 400],
    ['a body that is too large', { method: 'POST', body: `paths=${'x'.repeat(2 << 20)}` }, 400]
  ])('refuses %s', async (_, asked, status) => {
    expect(await ask(hubAddress, `/api/models/${REPO}/paths-info/main`, asked)).toMatchObject({ status })
  })
})

it('the hub mirror answers for each path once, and for 1,000 paths at most', async () => {
  const headers = { 'content-type': 'application/json' }
  const info = (paths: string[]) =>
    ask(hubAddress, `/api/models/${FOLDER}/paths-info/main`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ paths })
    })
  const { body } = await info(['config.json', 'absent', 'config.json'])
  expect(JSON.parse(body)).toMatchObject([{ path: 'config.json', type: 'file' }])
  expect(await info(Array.from({ length: 1001 }, (_, i) => `${i}`))).toMatchObject({ status: 400 })
  const tooLarge = { method: 'POST', headers, body: 'x'.repeat(512 << 10) }
  expect(await ask(hubAddress, `/api/models/${FOLDER}/paths-info/main`, tooLarge)).toMatchObject({ status: 400 })
})

it('the hub mirror reports a missing folder as missing', async () => {
  const tree = (rest: string) => ask(hubAddress, `/api/models/${FOLDER}/tree/main${rest}`)
  for (const none of ['/absent', '/config.json', '//x', `${'/'.repeat(7_000)}x`])
    expect(await tree(none)).toMatchObject({ status: 404, headers: { 'x-error-code': 'EntryNotFound' } })
  for (const root of ['', '/', '//']) expect(await tree(root)).toMatchObject({ status: 200 })
})

describe('the OCI mirror', () => {
  it.skipIf(!haveSkopeo)('gives skopeo an artifact that imports under the same manifest', async () => {
    const folder = join(daemon.folder, 'by-skopeo')
    await skopeo(
      'copy',
      '--preserve-digests',
      '--src-tls-verify=false',
      `docker://${ociAddress}/acme/tiny:bf16`,
      `oci:${folder}:x`
    )
    mkdirSync(join(daemon.folder, 'other'))
    const other = await testDaemon()
    expect(await other.svc('import', 'oci', folder, '--as', 'acme/tiny')).toMatchObject({
      code: 0,
      stdout: 'acme/tiny:bf16\n'
    })
    expect((await other.svc('resolve', 'acme/tiny')).stdout).toContain((await manifest('acme/tiny')).slice(7, 20))
  })
  it('gives another daemon a model, by quant and by digest', async () => {
    const other = await testDaemon()
    const image = `${ociAddress}/acme/model-7b-gguf`
    expect(await other.svc('import', 'oci', `${image}:q4_k_m`, '--as', 'acme/model-7b-gguf')).toMatchObject({
      code: 0,
      stdout: 'acme/model-7b-gguf:q4_k_m\n'
    })
    const { headers } = await ask(ociAddress, '/v2/acme/model-7b-gguf/manifests/q4_k_m')
    const byDigest = `${image}@${headers['docker-content-digest'] as string}`
    expect(await other.svc('import', 'oci', byDigest, '--as', 'by/digest')).toMatchObject({ code: 0 })
    expect(await ask(ociAddress, '/v2/acme/model-7b-gguf/tags/list')).toMatchObject({
      status: 200,
      body: '{"name":"acme/model-7b-gguf","tags":["q4_k_m"]}'
    })
  })

  it.each([
    '/v2/acme/secret/manifests/q4_k_m',
    '/v2/acme/secret/tags/list',
    '/v2/acme/absent/tags/list',
    '/v2/a/b/blobs/x',
    '/v1/'
  ])('does not have %s', async (path) => {
    expect(await ask(ociAddress, path)).toMatchObject({ status: 404, body: expect.stringContaining('"errors"') })
  })

  it('a model that becomes private is gone at once', async () => {
    const path = '/v2/acme/model-7b-gguf/manifests/q4_k_m'
    expect(await ask(ociAddress, path)).toMatchObject({ status: 200 })
    await daemon.svc('private', 'acme/model-7b-gguf:q4_k_m')
    expect(await ask(ociAddress, path)).toMatchObject({ status: 404 })
    expect(await ask(ociAddress, '/v2/acme/model-7b-gguf/tags/list')).toMatchObject({ status: 404 })
    expect(await ask(hubAddress, `/api/models/${REPO}`)).toMatchObject({ status: 404 })
    await daemon.svc('private', '--off', 'acme/model-7b-gguf:q4_k_m')
    expect(await ask(ociAddress, path)).toMatchObject({ status: 200 })
    expect(await ask(hubAddress, `/api/models/${REPO}`)).toMatchObject({ status: 200 })
  })
})

it('mirrors with a token require it, as bearer or as password', async () => {
  vi.stubEnv('SVC_MIRROR_TOKEN', TOKEN)
  const { mergeConfig } = await import('../../daemon/src/config/config.ts')
  const config = mergeConfig(
    { swarm: { enabled: false }, mirror: { oci_addr: '127.0.0.1:0', hub_addr: '127.0.0.1:0' } },
    { root: join(daemon.folder, 'with-token/root') },
    process.env
  )
  vi.unstubAllEnvs()
  mkdirSync(join(daemon.folder, 'with-token'))
  const guarded = await testDaemon({ folder: join(daemon.folder, 'with-token'), config })
  const facts = JSON.parse(readFileSync(join(guarded.folder, 'runtime.json'), 'utf8'))
  for (const [address, path, open] of [
    [facts.ociMirrorAddress, '/v2/', 200],
    // nothing is imported: with the token, the answer is that there is no such model
    [facts.hubMirrorAddress, `/api/models/${REPO}`, 404]
  ] as const) {
    const status = async (authorization?: string) =>
      (await ask(address, path, { headers: authorization === undefined ? {} : { authorization } })).status
    expect(await status()).toBe(401)
    for (const wrong of [
      'Bearer wrong',
      'Bearer',
      'Bearer ',
      `Bearer ${TOKEN}x`,
      `Digest ${TOKEN}`,
      TOKEN,
      'Basic !',
      'Basic Og=='
    ])
      expect(await status(wrong), wrong).toBe(401)
    expect(await status(`bearer ${TOKEN}`)).toBe(open)
    expect(await status(`Bearer ${Buffer.from(TOKEN).toString('base64')}`)).toBe(401)
    expect(await status(`Basic ${Buffer.from(`any:${TOKEN}`).toString('base64')}`)).toBe(open)
  }
})

describe('metrics', () => {
  it('are in the text format, and follow what the daemon does', async () => {
    const { body, headers } = await ask(metricsAddress, '/metrics')
    expect(headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8')
    const lines = body.trimEnd().split('\n')
    const names = new Set<string>()
    for (const line of lines) {
      if (line.startsWith('# TYPE ')) names.add(line.split(' ')[2]!)
      expect(line).toMatch(/^(?:# (?:HELP|TYPE) [a-z_]+ .+|[a-z_]+(?:\{(?:[a-z_]+="[^"]*",?)+\})? -?[0-9.e+-]+)$/)
    }
    expect([...names]).toEqual(
      expect.arrayContaining(['svc_store_blobs', 'svc_store_bytes', 'svc_event_loop_delay_seconds'])
    )
    expect(Number(/^svc_store_blobs (\d+)$/m.exec(body)![1])).toBeGreaterThan(10)
    const page = readFileSync(join(import.meta.dirname, '../../../docs/metrics.md'), 'utf8')
    for (const name of names) expect(page).toContain(`\`${name}\``)
  })

  it('report that the daemon is alive and ready, and nothing else', async () => {
    expect(await ask(metricsAddress, '/healthz')).toMatchObject({ status: 200, body: 'ok\n' })
    expect(await ask(metricsAddress, '/readyz')).toMatchObject({ status: 200 })
    expect(await ask(metricsAddress, '/v1/status')).toMatchObject({ status: 404 })
    expect(await ask(metricsAddress, '/metrics', { headers: { host: 'evil.example' } })).toMatchObject({ status: 421 })
  })
})

describe('files that a mirror unpacks', () => {
  const lent = () => join(daemon.folder, 'root/cache/views')
  const unpacked = `/${FOLDER}/resolve/main/tokenizer.json`

  it('are unpacked again after the cache was emptied', async () => {
    const { body } = await ask(hubAddress, unpacked)
    const { layers } = JSON.parse((await ask(ociAddress, '/v2/acme/tiny/manifests/bf16')).body)
    expect(readdirSync(lent()).length).toBeGreaterThan(0)
    for (const [address, path] of [
      [hubAddress, unpacked],
      [hubAddress, `/api/models/${FOLDER}/tree/main/`],
      ...layers.map(({ digest }: { digest: string }) => [ociAddress, `/v2/acme/tiny/blobs/${digest}`])
    ]) {
      rmSync(lent(), { recursive: true, force: true })
      expect(await ask(address, path), path).toMatchObject({ status: 200 })
    }
    expect(await ask(hubAddress, unpacked)).toMatchObject({ status: 200, body })
  })

  it('do not keep a removed model: its space can be reclaimed', async () => {
    await ask(hubAddress, unpacked)
    const view = (await manifest('acme/tiny')).slice('sha256:'.length)
    expect(existsSync(join(lent(), view))).toBe(true)
    const { removed } = JSON.parse((await daemon.svc('rm', 'acme/tiny', '--json')).stdout)
    expect(removed).toMatchObject([{ quants: [{ quant: 'bf16', needed: false }] }])
    expect(removed[0].freeableBytes).toBeGreaterThan(100_000)
    expect(await ask(hubAddress, unpacked)).toMatchObject({ status: 404 })
    expect(existsSync(join(lent(), view))).toBe(false)
  })
})
