// Every door that strangers reach, and every reason to refuse them: an answer names nothing that they did not say, the owner's log says why.
import { generateKeyPairSync } from 'node:crypto'
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from '@svc/client'
import { type FakeHub, startFakeHub } from '@svc/testkit/fake-hub'
import { makeGguf, seededBytes } from '@svc/testkit/models'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { BUILTIN_NETWORKS } from '../../src/app/networks.ts'
import { openSwarm } from '../../src/app/open-swarm.ts'
import { VERSION } from '../../src/app/version.ts'
import { mergeConfig } from '../../src/config/config.ts'
import { createLog } from '../../src/log.ts'
import { signed } from '../mirror/s3-client.ts'
import { type TestDaemon, temporaryFolder, testDaemon } from '../support/daemon.ts'

const TOKEN = 'canary-mirror-token'
const HUB_TOKEN = 'canary-hub-token'
const KEY = { id: 'CANARYKEY', secret: 'a-canary-of-many-characters' }
/** What only the hub says, to the daemon. */
const UPSTREAM_SAID = 'canary-said-by-the-hub'
const MIB = 1 << 20
const gguf = (seed: number, sizeBytes = 60_000): Buffer =>
  Buffer.concat([makeGguf({ seed }), seededBytes(sizeBytes, seed)])
const file = (path: string, seed: number, sizeBytes?: number) => ({ path, content: gguf(seed, sizeBytes) })

const cleanUps: (() => void | Promise<void>)[] = []
const cleanUp = (work: () => void | Promise<void>): void => void cleanUps.push(work)
afterAll(async () => {
  for (const work of cleanUps.reverse()) await work()
})

type Door = 'hub' | 'oci' | 's3' | 'webseed' | 'metrics'
let hub: FakeHub
let folder: string
let daemon: TestDaemon
let doors: Readonly<Record<Door, string>>
let peerAddress: string
const log: string[] = []
/** The names of torrents that are not shared, and their infohashes. */
const withheld: { readonly name: string; readonly infohash: string }[] = []

/** A store with something of each kind, made before there are rules and doors. */
async function fillStore(): Promise<void> {
  const config = mergeConfig(
    { swarm: { enabled: false }, hub: { endpoint: hub.endpoint } },
    { root: join(folder, 'root') },
    { SVC_HF_TOKEN: HUB_TOKEN }
  )
  const running: (() => void | Promise<void>)[] = []
  const first = await testDaemon(
    { folder, config, networks: { hub: BUILTIN_NETWORKS.hub! } },
    (end) => void running.push(end)
  )
  const bring = async (path: string, body: object): Promise<string> => {
    const job = await first.finished((await first.post(path, body)).body)
    expect(job).toMatchObject({ state: 'done' })
    return job.result!.manifests[0]!
  }
  for (const [seed, [as, isPrivate]] of Object.entries({
    'canary-open/shown': false,
    'canary-open/lacking': false,
    'acme/ruled-here': false,
    'canary-private/hidden': true
  }).entries()) {
    const path = join(folder, `${as.replace('/', '-')}-q8_0.gguf`)
    writeFileSync(path, gguf(100 + seed))
    await bring('/v1/import/local', { paths: [path], as, private: isPrivate })
  }
  await bring('/v1/import/hf', { repo: 'Canary-Gated/Model' })
  await bring('/v1/import/hf', { repo: 'Canary-Kept/Model', private: true })
  rmSync((await first.open('svc:///canary-open/lacking:q8_0')).body.files[0].path)
  for (const end of running.reverse()) await end()
}

beforeAll(async () => {
  hub = await startFakeHub({ tokens: [HUB_TOKEN] })
  cleanUp(() => hub.close())
  folder = temporaryFolder(cleanUp)
  hub.commit({ id: 'Canary-Gated/Model', gated: 'manual', files: [file('gated-q8_0.gguf', 1)] })
  hub.commit({ id: 'Canary-Kept/Model', files: [file('kept-q8_0.gguf', 2)] })
  hub.commit({ id: 'Acme/Ruled', files: [file('ruled-q8_0.gguf', 3)] })
  hub.commit({ id: 'Acme/Gated', gated: 'manual', files: [file('m-q8_0.gguf', 4)] })
  hub.commit({ id: 'Acme/Private', private: true, files: [file('m-q8_0.gguf', 5)] })
  hub.commit({ id: 'Acme/Wrong', files: [file('wrong-q8_0.gguf', 6)] })
  hub.commit({ id: 'Acme/Full', files: [file('full-q8_0.gguf', 7, 5 * MIB)] })
  hub.commit({ id: 'Acme/Large', files: [file('large-q8_0.gguf', 8, 9 * MIB)] })
  hub.commit({ id: 'Acme/Pickle', files: [{ path: 'model.bin', content: seededBytes(1000, 9) }] })
  hub.commit({ id: 'Acme/Offline', files: [file('m-q8_0.gguf', 10)] })
  hub.commit({ id: 'Acme/Fine', files: [file('fine-q8_0.gguf', 12)] })
  hub.commit({ id: 'Other/Model', files: [file('m-q8_0.gguf', 11)] })
  await fillStore()
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-384' })
  writeFileSync(join(folder, 'canary.pem'), publicKey.export({ type: 'spki', format: 'pem' }))
  writeFileSync(join(folder, 'canary.keys'), `${KEY.id}:${KEY.secret}\n`, { mode: 0o600 })
  const any = '127.0.0.1:0'
  const config = mergeConfig(
    {
      // room for what is here and two more models
      store: { max_bytes: 4 * MIB },
      hub: { endpoint: hub.endpoint },
      swarm: { dht: false, peer_addr: any, webseed_addr: any, fill_timeout: 1, seed_on_import: true },
      mirror: {
        hub_addr: any,
        oci_addr: any,
        s3_addr: any,
        s3_keys: join(folder, 'canary.keys'),
        on_demand: true,
        on_demand_allow: ['acme/*', 'canary-allowed/*'],
        on_demand_bytes: 8 * MIB
      },
      metrics: { addr: any },
      trust: [{ names: ['acme/ruled*', 'canary-ruled/*'], mode: 'require', keys: [join(folder, 'canary.pem')] }]
    },
    { root: join(folder, 'root') },
    { SVC_HF_TOKEN: HUB_TOKEN, SVC_MIRROR_TOKEN: TOKEN }
  )
  const networks = {
    hub: BUILTIN_NETWORKS.hub!,
    swarm: (context: Parameters<typeof openSwarm>[0]) => openSwarm(context)
  }
  const lines = createLog('debug', 'json', { write: (line: string) => void log.push(line) })
  daemon = await testDaemon({ folder, config, networks, log: lines }, cleanUp)
  const facts = JSON.parse(readFileSync(join(folder, 'runtime.json'), 'utf8'))
  const client = createClient({ socketPath: daemon.socketPath })
  cleanUp(() => client.close())
  const { swarm } = await client.status()
  peerAddress = swarm.peerAddress!
  doors = {
    hub: facts.hubMirrorAddress,
    oci: facts.ociMirrorAddress,
    s3: facts.s3MirrorAddress,
    webseed: swarm.webseedAddress!,
    metrics: facts.metricsAddress
  }
  for (const ref of ['canary-private/hidden:q8_0', 'canary-gated/model:q8_0']) {
    const { name, infohash, announced } = await client.share(`svc:///${ref}`)
    expect(announced).toBe(false)
    withheld.push({ name, infohash: infohash.replace('btmh:1220', '') })
  }
}, 60_000)

interface Asked {
  readonly method?: string
  readonly headers?: Record<string, string>
}

/** All that a stranger reads of an answer. */
function ask(
  door: Door,
  path: string,
  { method = 'GET', headers = {} }: Asked
): Promise<{ status: number; text: string }> {
  const [host, port] = doors[door].split(':')
  return new Promise((resolve, reject) => {
    request({ host, port, path, method, headers, agent: false }, (response) => {
      const { statusCode, statusMessage, rawHeaders } = response
      let text = `${statusMessage}\n${rawHeaders.join('\n')}\n`
      response.setEncoding('latin1').on('data', (chunk: string) => (text += chunk))
      const done = (): void => resolve({ status: statusCode!, text })
      response.on('end', done).on('error', done)
    })
      .on('error', reject)
      .end()
  })
}

/** What an answer says of the owner: folders, addresses, keys of the configuration, names, versions. `said` is what the stranger said. */
function toldBy(answer: string, said: string): string[] {
  const words = said.split(/[^\w.-]+/).filter((word) => word.length > 3)
  const text = words.reduce((left, word) => left.replaceAll(new RegExp(word.replaceAll('.', '\\.'), 'gi'), ''), answer)
  const secrets = [folder, tmpdir(), '/dev/shm', process.cwd(), hub.endpoint, 'canary', 'acme', TOKEN, KEY.id, VERSION]
  const shapes = [/\b[a-z0-9]+_[a-z_]+\b/g, /\[\[?[a-z.]+\]/g, /(?<![\d.])\d+\.\d+\.\d+(?![\d.])/g, /svcd?\/\d/g]
  return [
    ...secrets.filter((secret) => text.toLowerCase().includes(secret.toLowerCase())),
    ...shapes.flatMap((shape) => text.match(shape) ?? [])
  ]
}

const bearer = { authorization: `Bearer ${TOKEN}` }
const basic = { authorization: `Basic ${Buffer.from(`u:${TOKEN}`).toString('base64')}` }
const INFOHASH = 'ab'.repeat(32)
const s3 = (path: string, more: Parameters<typeof signed>[2] = {}) => signed(doors.s3, path, { key: KEY, ...more })

interface Refused extends Asked {
  readonly door: Door
  readonly kind: string
  readonly path: string | (() => string)
  readonly status: number
  /** Part of the owner's log. */
  readonly logged?: string
  /** Headers that depend on the address. */
  readonly sign?: (path: string) => Record<string, string>
  /** The hub has gone. */
  readonly isOffline?: true
}

const ofHub: readonly Omit<Refused, 'door'>[] = [
  { kind: 'an unknown name', path: '/api/models/none/at-all', status: 404 },
  { kind: 'a name that the hub does not know', path: '/api/models/acme/absent', status: 404 },
  { kind: 'an unknown path', path: '/none', status: 404 },
  { kind: 'an unknown file', path: '/acme/Fine/resolve/main/none.json', status: 404 },
  { kind: 'an unknown revision', path: '/acme/Fine/resolve/none/config.json', status: 404 },
  { kind: 'a private model here', path: '/api/models/canary-kept/model', status: 404 },
  { kind: 'a file of a private model here', path: '/canary-kept/model/resolve/main/kept-q8_0.gguf', status: 404 },
  { kind: 'a gated model here', path: '/api/models/canary-gated/model', status: 404 },
  { kind: 'a gated model of the hub', path: '/api/models/acme/gated', status: 404 },
  { kind: 'a private model of the hub', path: '/acme/private/resolve/main/m-q8_0.gguf', status: 404 },
  { kind: 'no token', path: '/api/models/acme/Fine', headers: {}, status: 401 },
  { kind: 'a wrong token', path: '/api/models/acme/Fine', headers: { authorization: 'Bearer no' }, status: 401 },
  { kind: 'a rule for signatures', path: '/api/models/acme/ruled', status: 404, logged: '[[trust]] 1' },
  { kind: 'a rule, for a file', path: '/acme/ruled/resolve/main/ruled-q8_0.gguf', status: 404 },
  { kind: 'what may not be fetched on demand', path: '/api/models/other/model', status: 404 },
  { kind: 'what no import takes', path: '/api/models/acme/pickle', status: 404, logged: 'E_NOT_IMPORTABLE' },
  {
    kind: 'wrong bytes of the hub',
    path: '/acme/Wrong/resolve/main/wrong-q8_0.gguf',
    status: 503,
    logged: 'job failed'
  },
  {
    kind: 'the quota of a day',
    path: '/acme/Large/resolve/main/large-q8_0.gguf',
    status: 507,
    logged: 'the bytes of a day are spent'
  },
  { kind: 'the quota of the store', path: '/acme/Full/resolve/main/full-q8_0.gguf', status: 503, logged: 'E_NO_SPACE' },
  {
    kind: 'a hub that is away',
    path: '/api/models/acme/offline',
    status: 503,
    isOffline: true,
    logged: 'the hub redirects'
  },
  { kind: 'another method', path: '/acme/Fine', method: 'DELETE', status: 405 },
  { kind: 'another host', path: '/acme/Fine', headers: { ...bearer, host: 'evil.example' }, status: 421 },
  { kind: 'a page', path: '/acme/Fine', headers: { ...bearer, origin: 'http://evil.example' }, status: 403 },
  {
    kind: 'a body that is none',
    path: '/api/models/acme/Fine/paths-info/main',
    method: 'POST',
    headers: { ...bearer, 'content-type': 'application/json' },
    status: 400
  },
  { kind: 'a long path', path: `/${'x'.repeat(9000)}`, status: 404 }
]

const ofOci: readonly Omit<Refused, 'door'>[] = [
  { kind: 'an unknown name', path: '/v2/none/at-all/manifests/latest', status: 404 },
  { kind: 'an unknown path', path: '/none', status: 404 },
  { kind: 'a private model', path: '/v2/canary-private/hidden/manifests/q8_0', status: 404 },
  { kind: 'the tags of a private model', path: '/v2/canary-private/hidden/tags/list', status: 404 },
  { kind: 'a gated model', path: '/v2/canary-gated/model/manifests/q8_0', status: 404 },
  { kind: 'no token', path: '/v2/', headers: {}, status: 401 },
  { kind: 'a wrong token', path: '/v2/', headers: { authorization: 'Basic bm86bm8=' }, status: 401 },
  { kind: 'a rule for signatures', path: '/v2/acme/ruled-here/manifests/q8_0', status: 404 },
  { kind: 'what may not be fetched on demand', path: '/v2/canary-open/lacking/manifests/q8_0', status: 404 },
  { kind: 'an unknown blob', path: `/v2/canary-open/shown/blobs/sha256:${INFOHASH}`, status: 404 },
  { kind: 'no digest', path: '/v2/canary-open/shown/blobs/x', status: 404 },
  { kind: 'another method', path: '/v2/a/b/blobs/uploads/', method: 'POST', status: 405 },
  { kind: 'another host', path: '/v2/', headers: { ...basic, host: 'evil.example' }, status: 421 },
  { kind: 'a page', path: '/v2/', headers: { ...basic, origin: 'http://evil.example' }, status: 403 }
]

const OBJECT = '/models/canary-open/shown/q8_0/none.gguf'
const ofS3: readonly Omit<Refused, 'door'>[] = [
  { kind: 'an unknown key', path: OBJECT, status: 404 },
  { kind: 'an unknown bucket', path: '/none/x', status: 404 },
  { kind: 'a private model', path: '/models/canary-private/hidden/q8_0/canary-private-hidden-q8_0.gguf', status: 404 },
  { kind: 'a gated model', path: '/models/canary-gated/model/q8_0/gated-q8_0.gguf', status: 404 },
  { kind: 'a rule for signatures', path: '/models/acme/ruled-here/q8_0/acme-ruled-here-q8_0.gguf', status: 404 },
  { kind: 'no signature', path: OBJECT, sign: () => ({}), status: 403 },
  {
    kind: 'a wrong signature',
    path: OBJECT,
    sign: (path) => s3(path, { key: { ...KEY, secret: 'wrong' } }),
    status: 403
  },
  {
    kind: 'an unknown access key',
    path: OBJECT,
    sign: (path) => s3(path, { key: { ...KEY, id: 'NOBODY' } }),
    status: 403
  },
  { kind: 'an old signature', path: OBJECT, sign: (path) => s3(path, { at: new Date(0) }), status: 403 },
  { kind: 'no credential', path: OBJECT, sign: () => ({ authorization: 'AWS4-HMAC-SHA256 x' }), status: 400 },
  { kind: 'another method', path: OBJECT, method: 'PUT', status: 405 },
  { kind: 'a subresource', path: '/models?acl', status: 501 },
  { kind: 'another host', path: OBJECT, sign: () => ({ host: 'evil.example' }), status: 421 }
]

const ofWebseed: readonly Omit<Refused, 'door'>[] = [
  { kind: 'an unknown name', path: '/none/x', status: 404 },
  { kind: 'an unknown infohash', path: `/bt/${INFOHASH}.torrent`, status: 404 },
  { kind: 'a private model', path: () => `/bt/${withheld[0]!.infohash}.torrent`, status: 404 },
  { kind: 'the layers of a private model', path: () => `/bt/piece-layers/${withheld[0]!.infohash}`, status: 404 },
  {
    kind: 'a file of a private model',
    path: () => `/${withheld[0]!.name}/canary-private-hidden-q8_0.gguf`,
    status: 404
  },
  { kind: 'a gated model', path: () => `/${withheld[1]!.name}/gated-q8_0.gguf`, status: 404 },
  { kind: 'another method', path: '/x', method: 'POST', status: 405 },
  { kind: 'another host', path: '/x', headers: { host: 'evil.example' }, status: 421 },
  { kind: 'a page', path: '/x', headers: { referer: 'http://evil.example/' }, status: 403 }
]

const ofMetrics: readonly Omit<Refused, 'door'>[] = [
  { kind: 'an unknown path', path: '/none', status: 404 },
  { kind: 'another method', path: '/metrics', method: 'POST', status: 405 },
  { kind: 'another host', path: '/metrics', headers: { host: 'evil.example' }, status: 421 },
  { kind: 'a page', path: '/metrics', headers: { 'sec-fetch-site': 'cross-site' }, status: 403 }
]

const USUAL: Readonly<Partial<Record<Door, Record<string, string>>>> = { hub: bearer, oci: basic }
const table = Object.entries({ hub: ofHub, oci: ofOci, s3: ofS3, webseed: ofWebseed, metrics: ofMetrics }).flatMap(
  ([door, rows]) => rows.map((row): Refused => ({ door: door as Door, ...row }))
)

test.each(table)('$door, $kind: the answer names nothing', async (row) => {
  const { door, method, status, logged, isOffline } = row
  const path = typeof row.path === 'string' ? row.path : row.path()
  const signing =
    row.sign ?? (door === 's3' ? (at: string) => s3(at, { ...(method !== undefined && { method }) }) : undefined)
  const headers = signing?.(path) ?? row.headers ?? USUAL[door] ?? {}
  hub.setFaults(({ path: name }) =>
    isOffline
      ? { kind: 'redirect', location: `ftp://${UPSTREAM_SAID}/` }
      : name === 'wrong-q8_0.gguf'
        ? { kind: 'wrong-bytes' }
        : undefined
  )
  log.length = 0
  const answer = await ask(door, path, { headers, ...(method !== undefined && { method }) })
  expect(answer.status, answer.text).toBe(status)
  expect(toldBy(answer.text, `${path} ${Object.values(headers).join(' ')}`), answer.text).toEqual([])
  if (logged !== undefined) expect(log.join('')).toContain(logged)
})

test('peers that ask for what is unknown, private or gated get no byte', async () => {
  for (const infohash of [INFOHASH, ...withheld.map((each) => each.infohash)]) {
    const [host, port] = peerAddress.split(':')
    const hello = Buffer.from(`\x13BitTorrent protocol\0\0\0\0\0\x10\0\x14`, 'latin1')
    const bytes = Buffer.concat([hello, Buffer.from(infohash, 'hex').subarray(0, 20), Buffer.alloc(20, 'p')])
    const given = await new Promise<Buffer>((resolve, reject) => {
      const chunks: Buffer[] = []
      connect(Number(port), host, function onConnect(this: Socket) {
        this.write(bytes)
      })
        .on('data', (chunk) => chunks.push(chunk))
        .on('error', reject)
        .on('close', () => resolve(Buffer.concat(chunks)))
    })
    expect(given.length).toBe(0)
  }
})

test('a store that is gone: all doors say no more than that', async () => {
  renameSync(join(folder, 'root'), join(folder, 'elsewhere'))
  try {
    const path = { hub: '/x', oci: '/v2/', s3: OBJECT, webseed: '/x', metrics: '/readyz' }
    for (const door of ['hub', 'oci', 's3', 'webseed', 'metrics'] as const) {
      const headers = door === 's3' ? s3(OBJECT) : (USUAL[door] ?? {})
      const answer = await ask(door, path[door], { headers })
      expect([door, answer.status]).toEqual([door, door === 's3' ? 500 : 503])
      expect(toldBy(answer.text, `${path[door]} ${Object.values(headers).join(' ')}`), answer.text).toEqual([])
    }
  } finally {
    renameSync(join(folder, 'elsewhere'), join(folder, 'root'))
  }
})
