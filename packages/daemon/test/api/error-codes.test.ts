// Every code of the error table is provoked through the socket: in a response, or in a job that fails. A code without a
// row here does not compile, and fails.
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ERROR_CODES, type ErrorCode } from '@svc/client/protocol'
import { startFakeCatalog } from '@svc/testkit/fake-catalog'
import { startFakeHub } from '@svc/testkit/fake-hub'
import { type FakeHubFault, type FakeTreeEntry, scriptedFaults } from '@svc/testkit/fake-hub-faults'
import { expect, test, vi } from 'vitest'
import { BUILTIN_NETWORKS } from '../../src/app/networks.ts'
import { type Answer, sharedByFile, type TestDaemon, testDaemon } from '../support/daemon.ts'
import { gguf, writeFiles } from '../support/models.ts'
import { envelopeOf, rawExchange } from '../support/raw.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const ZEROS = '0'.repeat(64)

/** Without swarm, hub and catalog. */
const local = sharedByFile((cleanUp) => testDaemon({}, cleanUp))

/** With all of them, on loopback. */
const outward = sharedByFile(async (cleanUp) => {
  const hub = await startFakeHub()
  cleanUp(() => hub.close())
  const catalog = await startFakeCatalog()
  cleanUp(() => catalog.close())
  const commit = (id: string, more = {}): string =>
    hub.commit({ id, files: [{ path: 'm-q8_0.gguf', content: { seed: 1, sizeBytes: 50_000 } }], ...more })
  commit('org/plain')
  commit('org/gated', { gated: 'manual' })
  const fileConfig = {
    hub: { endpoint: hub.endpoint },
    catalog: { endpoint: catalog.endpoint },
    swarm: { dht: false, peer_addr: '127.0.0.1:0' }
  }
  return { hub, catalog, api: await testDaemon({ fileConfig, networks: BUILTIN_NETWORKS }, cleanUp) }
})

/** A model of its own, so that its damage affects no other test. */
let seeds = 10
async function model(repo: string, quants: readonly string[] = ['q8_0']): Promise<{ api: TestDaemon; ref: string }> {
  const api = await local()
  const names = quants.map((quant) => [`m-${quant}.gguf`, gguf(2000, seeds++)] as const)
  const job = await api.import([writeFiles(join(api.folder, repo), Object.fromEntries(names))], repo)
  expect(job.state).toBe('done')
  return { api, ref: `svc:///${repo}:${quants[0]}` }
}

interface Imported {
  readonly api: TestDaemon
  readonly ref: string
}

/** A model whose file of this kind has other bytes, or is gone. */
async function spoiled(repo: string, which: 'index' | 'manifest' | 'weights', bytes?: string): Promise<Imported> {
  const { api, ref } = await model(repo)
  const { files } = (await api.open(ref)).body as { files: { path: string; kind?: string }[] }
  const at = which === 'weights' ? files.findIndex(({ kind }) => kind === 'weights.gguf') : which === 'index' ? 0 : 1
  const { path } = files[at]!
  // a new file in the old one's place: the stored one is read-only, and may be linked from elsewhere.
  rmSync(path)
  if (bytes !== undefined) writeFileSync(path, bytes)
  return { api, ref }
}

async function hubFault(stage: 'tree' | 'resolve' | 'cdn', fault: FakeHubFault): Promise<Answer> {
  const { hub, api } = await outward()
  hub.setFaults(scriptedFaults([{ stage, fault }]))
  try {
    return await api.post('/v1/import/hf', { repo: 'org/plain' })
  } finally {
    hub.setFaults(undefined)
  }
}

/** A daemon whose only job hangs, while it stops. */
async function stopping<T>(look: (api: TestDaemon, job: { id: string }) => Promise<T>): Promise<T> {
  const { hub } = await outward()
  const fileConfig = { hub: { endpoint: hub.endpoint }, swarm: { enabled: false } }
  const api = await testDaemon({ fileConfig, networks: BUILTIN_NETWORKS })
  hub.setFaults(scriptedFaults([{ stage: 'cdn', fault: { kind: 'stall', afterBytes: 10 } }]))
  try {
    const { status, body } = await api.post('/v1/import/hf', { repo: 'org/plain' })
    expect(status).toBe(201)
    const closing = api.running.close()
    const seen = await look(api, body)
    await closing
    return seen
  } finally {
    hub.setFaults(undefined)
  }
}

const get = async (path: string): Promise<Answer> => (await local()).get(path)
const answered = (answer: Answer): string => answer.body.error.code
async function failed(api: TestDaemon, answer: Answer): Promise<string> {
  expect(answer.status).toBe(201)
  return (await api.finished(answer.body)).error!.code
}
async function emptyBlob(headers: Record<string, string>): Promise<Answer> {
  const { api, ref } = await model(`blob/${seeds}`)
  return api.get(`/v1/blob/${(await api.open(ref)).body.manifestDigest}`, headers)
}

const LARGE = Buffer.alloc(1_100_000, ' ')

const PROVOKED: Readonly<Record<ErrorCode, () => Promise<string>>> = {
  E_UNSUPPORTED_VERSION: async () => answered(await get('/v2/models')),
  E_NOT_FOUND: async () => answered(await get('/v1/jobs/abc')),
  E_METHOD_NOT_ALLOWED: async () => answered(await (await local()).call('DELETE', '/v1/models')),
  E_BAD_REQUEST: async () => answered(await get('/v1/resolve')),
  E_TIMEOUT: async () => {
    const { socketPath } = await testDaemon({ http: { limits: { headersTimeoutMs: 100, connectionsCheckMs: 50 } } })
    return envelopeOf(await rawExchange(socketPath, 'GET /v1/jobs HTTP/1.1\r\nHo')).code
  },
  E_PRECONDITION_FAILED: async () => answered(await emptyBlob({ 'If-Match': `"sha256:${ZEROS}"` })),
  E_TOO_LARGE: async () => answered(await (await local()).call('POST', '/v1/ensure', { raw: LARGE })),
  E_HEADERS_TOO_LARGE: async () => {
    const head = `GET /v1/jobs HTTP/1.1\r\nHost: x\r\nA: ${'x'.repeat(20_000)}\r\n\r\n`
    return envelopeOf(await rawExchange((await local()).socketPath, head)).code
  },
  E_PARSE: async () => answered(await (await local()).resolve('a/b:q8_0')),
  E_LENGTH: async () => answered(await (await local()).resolve(`svc:///a/b:${'q'.repeat(600)}`)),
  E_UNKNOWN_REF: async () => {
    const { api, ref } = await model('no/manifest')
    const { files } = (await api.open(ref)).body as { files: { digest: string; kind?: string }[] }
    // weights, a config and an index are sound blobs, but not manifests
    for (const { digest } of files.filter((_, i) => i !== 1)) {
      const answer = await api.open(`svc:///no/manifest@${digest}`)
      expect([answer.status, answer.body.error.code]).toEqual([404, 'E_UNKNOWN_REF'])
    }
    return answered(await api.resolve('svc:///nobody/none:q8_0'))
  },
  E_AMBIGUOUS_SELECTOR: async () => {
    const { api } = await model('two/quants', ['q4_0', 'q4_k'])
    return answered(await api.resolve('svc:///two/quants:q4'))
  },
  E_NO_MEMBER: async () => {
    const { api } = await model('one/quant')
    return answered(await api.resolve('svc:///one/quant:q2_k'))
  },
  E_PIN_MISMATCH: async () => {
    const { api, ref } = await model('one/pinned')
    return answered(await api.resolve(`${ref}@sha256:${ZEROS}`))
  },
  E_NO_INDEX: async () => {
    const { api, ref } = await spoiled('no/index', 'index')
    return answered(await api.resolve(ref))
  },
  E_INVALID_INDEX: async () => {
    const { api, ref } = await spoiled('invalid/index', 'index', '{}')
    return answered(await api.resolve(ref))
  },
  E_CORRUPTION: async () => {
    const { api, ref } = await spoiled('corrupt/manifest', 'manifest', '{}')
    return answered(await api.open(ref))
  },
  E_RANGE_INVALID: async () => answered(await emptyBlob({ Range: 'bytes=9999999-' })),
  E_SOURCE_NOT_REGULAR: async () => {
    const api = await local()
    const path = join(api.folder, 'linked', 'm-q8_0.gguf')
    mkdirSync(dirname(path))
    symlinkSync('/dev/null', path)
    return answered(await api.post('/v1/import/local', { paths: [path], as: 'a/link' }))
  },
  E_SOURCE_FORBIDDEN: async () => answered(await (await outward()).api.post('/v1/import/hf', { repo: 'org/gated' })),
  E_SOURCE_UNAVAILABLE: async () => {
    const { api, ref } = await spoiled('lost/weights', 'weights')
    return failed(api, await api.post('/v1/ensure', { ref }))
  },
  E_RATE_LIMITED: async () => {
    const headers = { 'retry-after': '400' }
    return answered(await hubFault('tree', { kind: 'status', status: 429, headers }))
  },
  E_NOT_IMPORTABLE: async () => {
    const api = await local()
    const folder = writeFiles(join(api.folder, 'no-weights'), { 'tokenizer.json': '{}' })
    return failed(api, await api.post('/v1/import/local', { paths: [folder], as: 'a/none' }))
  },
  E_NOT_IMPLEMENTED: async () => {
    const infohash = `btmh:1220${ZEROS}`
    const body = { infohash, manifestDigest: `sha256:${ZEROS}`, webseeds: ['http://127.0.0.1:9/'] }
    return answered(await (await local()).post('/v1/import/bt', body))
  },
  E_NOT_ANCHORED: async () => {
    const { hub, catalog, api } = await outward()
    const webseed = encodeURIComponent(`${hub.endpoint}/org/gone/resolve/${'f'.repeat(40)}`)
    catalog.list([{ repo: 'org/gone', magnet: `magnet:?xt=urn:btih:${'e'.repeat(40)}&dn=m-q8_0.gguf&ws=${webseed}` }])
    return answered(await api.post('/v1/import/catalog', { repo: 'org/gone' }))
  },
  E_VERIFY_FAILED: async () => {
    const { api, ref } = await spoiled('bad/weights', 'weights', 'other bytes')
    return failed(api, await api.post('/v1/verify', { target: ref }))
  },
  E_KEPT: async () => {
    const { api, ref } = await model('kept/model')
    return failed(api, await api.post('/v1/evict', { ref }))
  },
  E_NO_SPACE: async () => {
    const { api } = await outward()
    // the listing promises more than any disk of a test has.
    const sizeBytes = 2 ** 46
    const inflated = (entries: FakeTreeEntry[]): unknown =>
      entries.map((entry) =>
        entry.lfs === undefined
          ? entry
          : { ...entry, size: sizeBytes, lfs: { ...(entry.lfs as object), size: sizeBytes } }
      )
    return failed(api, await hubFault('tree', { kind: 'tree', edit: inflated }))
  },
  E_ABORTED: () => stopping(async (api, job) => (await api.finished(job)).error!.code),
  E_SHUTTING_DOWN: () => stopping(async (api) => answered(await api.post('/v1/verify', { target: 'all' }))),
  E_INTERNAL: async () => {
    const { api, ref } = await model('state/unreadable')
    const path = join(api.root, 'state/repos/state/unreadable.json')
    expect(readFileSync(path, 'utf8')).toContain('sha256:')
    writeFileSync(path, '{')
    return answered(await api.resolve(ref))
  }
}

test.each(Object.keys(ERROR_CODES) as ErrorCode[])('%s', async (code) => {
  expect(await PROVOKED[code]()).toBe(code)
})
