// Every way out that a server can redirect, and every redirect that it can try. All servers are on loopback: which addresses a server
// elsewhere may name is in `dialling.slow.ts`, what a bucket's redirects get in `packages/publish/test/hostile-s3.slow.ts`.
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { createHub, createMemorySink, type Hub, type HubFile } from '@svc/hub'
import { systemClock } from '@svc/internal-clock'
import { HttpClient } from '@svc/internal-http'
import { buildInfo, leafLayer, piecesRoot } from '@svc/metainfo'
import { Repository } from '@svc/oci'
import { digestFromHex } from '@svc/ref'
import { createFileStorage, createSwarm, type Swarm } from '@svc/swarm'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { CatalogProvider } from '../../../catalog/src/provider.ts'
import { CERTIFICATE, KEY } from '../../../hub/test/certificate.ts'
import { announceHttp } from '../../../internal/discovery/src/http-announce.ts'
import { tryParseTrackerUrl } from '../../../internal/discovery/src/tracker-url.ts'
import { throughUrl } from '../../../publish/src/check.ts'
import { WebseedDocuments } from '../../../sharing/src/webseed-documents.ts'

const BYTES = Buffer.alloc(100_000, 'some bytes of a model')
const SHA256 = createHash('sha256').update(BYTES).digest('hex')
const COMMIT = '1'.repeat(40)
const CREDENTIAL = 'of the owner'
const never = new AbortController().signal
/** None of these documents is read. */
const unread = (): Promise<never> => Promise.reject(new Error('a document was read'))

interface Seen {
  readonly origin: string
  readonly method: string
  readonly path: string
  readonly range: string | undefined
  readonly hasCredential: boolean
}

/** The servers: `home` is asked, `away` has another host, both are on this machine; `secure` speaks TLS. */
const origins = { home: '', away: '', secure: '' }
const servers: Server[] = []
let seen: Seen[] = []
/** What the server at home answers to what is no destination. */
let redirect: (request: IncomingMessage, response: ServerResponse) => void
/** What destinations send. */
let body: Uint8Array = BYTES

const END = '/end'

function answer(origin: string): RequestListener {
  return (request, response) => {
    const { authorization, range } = request.headers
    const path = request.url!
    seen.push({ origin, method: request.method!, path, range, hasCredential: authorization !== undefined })
    request.resume()
    if (!path.startsWith(END)) return redirect(request, response)
    const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(range ?? '') ?? []
    const [start, end] = from === undefined ? [0, body.length] : [Number(from), Number(to) + 1]
    response.writeHead(from === undefined ? 200 : 206, {
      'content-length': end - start,
      ...(from !== undefined && { 'content-range': `bytes ${start}-${end - 1}/${body.length}` })
    })
    response.end(body.subarray(start, end))
  }
}

async function listen(name: keyof typeof origins, host: string, server: Server, shown = host): Promise<void> {
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  const scheme = name === 'secure' ? 'https' : 'http'
  origins[name] = `${scheme}://${shown}:${(server.address() as AddressInfo).port}`
  server.on('request', answer(origins[name]))
  servers.push(server)
}

const folder = mkdtempSync(join(tmpdir(), 'svc-redirects-'))
const authorities = getCACertificates()
let swarm: Swarm
beforeAll(async () => {
  setDefaultCACertificates([...authorities, CERTIFICATE])
  await listen('home', '127.0.0.1', createServer())
  await listen('away', '127.0.0.2', createServer())
  await listen('secure', '127.0.0.1', createSecureServer({ key: KEY, cert: CERTIFICATE }), 'localhost')
  swarm = await createSwarm({
    peerAddress: false,
    webseedHeaders: async ({ origin }) => (origin === base ? { authorization: CREDENTIAL } : undefined)
  })
})
afterAll(async () => {
  setDefaultCACertificates(authorities)
  await swarm.close()
  for (const server of servers) server.close().closeAllConnections()
  rmSync(folder, { recursive: true })
})
/** The origin that is asked. */
let base = ''
beforeEach(() => {
  seen = []
  body = BYTES
})

const FILE: HubFile = {
  repoId: 'a/b',
  commit: COMMIT,
  path: 'm.gguf',
  sizeBytes: BYTES.length,
  sha256: digestFromHex(SHA256)
}
const bytesOr = (bytes: Uint8Array | undefined): string =>
  bytes !== undefined && BYTES.subarray(0, bytes.length).equals(bytes) ? 'done' : 'other bytes'

async function withHub(work: (hub: Hub) => Promise<string>): Promise<string> {
  const hub = createHub({ endpoint: base, token: 'hf_secret', retry: { tries: 1 }, limits: { smallFileBytes: 1_000 } })
  return work(hub).finally(() => hub.close())
}

async function withRepository(work: (repository: Repository) => Promise<string>): Promise<string> {
  const { host, protocol } = new URL(base)
  const credentials = async () => ({ username: 'u', password: CREDENTIAL })
  const repository = new Repository(
    { registry: host, repository: 'a/b' },
    { credentials, plainHttp: protocol === 'http:' }
  )
  const own = redirect
  redirect = (request, response) => {
    if (request.headers.authorization !== undefined) return own(request, response)
    seen.pop()
    response.writeHead(401, { 'www-authenticate': 'Basic realm="a"', 'content-length': '0' }).end()
  }
  return work(repository).finally(() => repository.close())
}

async function withWeb(work: (web: HttpClient) => Promise<string>): Promise<string> {
  const web = new HttpClient()
  return work(web).finally(() => web.close())
}

let torrents = 0
/** A torrent of its own: the name is in the infohash. */
async function webseed(): Promise<string> {
  const name = `t${torrents++}`
  const root = piecesRoot(leafLayer(BYTES), BYTES.length)
  const info = buildInfo({
    name,
    pieceLength: 131_072,
    files: [{ path: name, length: BYTES.length, piecesRoot: root }]
  })
  const torrent = swarm.add({ info, storage: createFileStorage(join(folder, name)), webseeds: [`${base}/`] })
  const outcome = Promise.withResolvers<string>()
  torrent.on('warning', ({ kind, message }) => kind === 'webseed' && outcome.resolve(message))
  torrent.completed().then(
    () => outcome.resolve('done'),
    (error) => outcome.resolve(String(error))
  )
  return outcome.promise.finally(() => torrent.remove())
}

/** A hub whose service of chunks, or their storage, is at `base`. */
async function xet(storage: 'service' | 'storage'): Promise<string> {
  const [older, newer] = ['a'.repeat(64), 'b'.repeat(64)]
  const file = { ...FILE, sizeBytes: 1 << 18 }
  const own = redirect
  redirect = (request, response) => {
    const path = request.url!
    const isToken = path.includes('xet-read-token')
    const isService = path.includes('reconstructions')
    if (!isToken && !(isService && storage === 'storage')) return own(request, response)
    seen.pop()
    const half = { range: { start: 0, end: 1 }, unpacked_length: file.sizeBytes / 2 }
    const ranges = [{ chunks: half.range, bytes: { start: 0, end: 99 } }]
    const said = isToken
      ? { accessToken: 't', exp: 2 ** 40, casUrl: base }
      : {
          offset_into_first_range: 0,
          terms: [older, path.includes(older) ? older : newer].map((hash) => ({ hash, ...half })),
          xorbs: { [newer]: [{ url: `${base}/xorb`, ranges }] }
        }
    response.end(JSON.stringify(said))
  }
  return withHub(async (hub) => {
    const known = { file: { ...file, xetHash: older }, read: async (target: Uint8Array) => target.length }
    const reused = await hub.reuse({ ...file, xetHash: newer }, async () => known, createMemorySink(file.sizeBytes))
    return reused.failure?.message ?? 'done'
  })
}

interface Door {
  /** Which redirects it follows: to any origin that may be dialled, to its own, or none. */
  readonly follows: 'any' | 'own' | 'none'
  /** What it asks for is a range. */
  readonly isRange?: boolean
  readonly sends?: Uint8Array
  readonly ask: () => Promise<string>
}

const DOORS: Readonly<Record<string, Door>> = {
  'a file of the hub': {
    follows: 'any',
    isRange: true,
    ask: () =>
      withHub(async (hub) => {
        const part = { start: 1_000, end: 3_000 }
        return Buffer.from(await hub.read(FILE, part)).equals(BYTES.subarray(1_000, 3_000)) ? 'done' : 'other bytes'
      })
  },
  'a listing of the hub': {
    follows: 'own',
    sends: Buffer.from(JSON.stringify({ sha: COMMIT, id: 'a/b', private: false, gated: false })),
    ask: () => withHub(async (hub) => ((await hub.info('a/b', 'main')).commit === COMMIT ? 'done' : 'other'))
  },
  'the service of chunks (Xet)': { follows: 'none', ask: () => xet('service') },
  'the storage of chunks (Xet)': { follows: 'none', isRange: true, ask: () => xet('storage') },
  'a blob of a registry': {
    follows: 'any',
    isRange: true,
    ask: () =>
      withRepository(async (repository) => {
        const part = { start: 5, end: 50 }
        const answer = await repository.blob(digestFromHex(SHA256), part)
        return answer.status === 206
          ? bytesOr(Buffer.concat([BYTES.subarray(0, 5), await answer.bytes(45)]))
          : 'refused'
      })
  },
  'a push to a registry': {
    follows: 'none',
    ask: () =>
      withRepository(async (repository) => {
        const call = { method: 'PUT', target: 'manifests/latest', body: () => BYTES, scope: 'push' } as const
        return (await repository.expect(call, 'the manifest', 201)).status === 201 ? 'done' : 'refused'
      })
  },
  'a webseed': { follows: 'own', isRange: true, ask: webseed },
  "a webseed's documents": {
    follows: 'none',
    ask: () =>
      withWeb(async (web) => {
        const keys = {
          headersFor: async ({ origin }: URL) => (origin === base ? { authorization: CREDENTIAL } : undefined)
        }
        const told: string[] = []
        const documents = new WebseedDocuments(
          { web, keys, clock: systemClock, parse: unread },
          { webseeds: [base], others: [] } as never,
          (message) => told.push(message)
        )
        const found = await documents.manifest(digestFromHex(SHA256), never)
        return found === undefined ? told.join() : 'done'
      })
  },
  'the catalog': {
    follows: 'none',
    ask: () =>
      withWeb(async (web) =>
        (await new CatalogProvider(base, web, systemClock, unread).search('a')) ? 'done' : 'refused'
      )
  },
  'what a publication reads back': {
    follows: 'any',
    isRange: true,
    ask: () =>
      withWeb(async (web) => {
        const object = { key: 'a/m.gguf', sizeBytes: BYTES.length } as never
        return bytesOr(await throughUrl(`${base}/`, web)(object, 0, 900))
      })
  },
  'a tracker': {
    follows: 'any',
    sends: Buffer.from('d8:intervali60e5:peers0:e'),
    ask: async () => {
      const id = Buffer.alloc(20, 1)
      const announce = { infohash: id, peerId: id, port: 9, uploaded: 0, downloaded: 0, left: 1 } as never
      const { intervalMs } = await announceHttp(tryParseTrackerUrl(`${base}/announce`)!, announce, 'owner', never)
      return intervalMs === 60_000 ? 'done' : 'other'
    }
  }
}

interface Case {
  /** Undefined: none. */
  readonly to: (path: string) => string | undefined
  /** What to think of it. */
  readonly is: 'own' | 'other' | 'bad'
  readonly from?: 'secure'
  readonly status?: number
  /** Requests before it is given up. Default 1. */
  readonly most?: number
}

const at = (place: keyof typeof origins, path = END): string => `${origins[place]}${path}`
const port = (): string => new URL(origins.home).port
/** `/hop/3` leads to `/hop/2`, and so on. */
const hops =
  (count: number): Case['to'] =>
  (path) => {
    const left = Number(/^\/hop\/(\d+)/.exec(path)?.[1] ?? count)
    return left === 1 ? END : `/hop/${left - 1}`
  }
const own = (status: number): Case => ({ to: () => END, is: 'own', status })
const other = (status: number): Case => ({ to: () => at('away'), is: 'other', status })
const bad = (to: () => string | undefined): Case => ({ to, is: 'bad' })

const CASES: Readonly<Record<string, Case>> = {
  ...Object.fromEntries([301, 302, 303, 307, 308].map((status) => [`its own host (${status})`, own(status)])),
  ...Object.fromEntries([302, 307, 308].map((status) => [`another host (${status})`, other(status)])),
  'its own host, with all of the URL': { to: () => `${base}${END}`, is: 'own' },
  'another host, without a scheme': { to: () => at('away').replace('http:', ''), is: 'other' },
  'another port of its host, with TLS': { to: () => at('secure'), is: 'other' },
  'three of its own in a row': { to: hops(3), is: 'own' },
  'http, from https': { to: () => at('home'), is: 'bad', from: 'secure' },
  'the cloud’s credentials': bad(() => 'http://169.254.169.254/end'),
  'a link-local address': bad(() => 'http://[fe80::1]/end'),
  'the unspecified address': bad(() => `http://0.0.0.0:${port()}${END}`),
  'the unspecified address, in IPv6': bad(() => `http://[::]:${port()}${END}`),
  'the unspecified address, in another notation': bad(() => `http://0:${port()}${END}`),
  'a multicast address': bad(() => `http://224.0.0.1:${port()}${END}`),
  'a file': bad(() => 'file:///etc/passwd'),
  FTP: bad(() => `ftp://127.0.0.1:${port()}${END}`),
  data: bad(() => 'data:text/plain,bytes'),
  'a user': bad(() => `http://user@127.0.0.1:${port()}${END}`),
  'a user with a password': bad(() => `http://user:secret@127.0.0.1:${port()}${END}`),
  'no host': bad(() => 'http://'),
  'an impossible port': bad(() => 'http://127.0.0.1:99999/end'),
  'an unfinished address': bad(() => 'http://[::1'),
  'a name with a space': bad(() => 'http://a b/end'),
  nowhere: bad(() => undefined),
  itself: { to: (path) => path, is: 'bad', most: 6 },
  'six of its own in a row': { to: hops(7), is: 'bad', most: 6 }
}

describe.each(Object.entries(DOORS))('%s', (_, door) => {
  test.each(Object.entries(CASES))('redirects to %s', async (_, { to, is, from, status = 302, most = 1 }) => {
    base = origins[from ?? 'home']
    body = door.sends ?? BYTES
    redirect = (request, response) => {
      const location = to(request.url!)
      response.writeHead(status, { 'content-length': '0', ...(location !== undefined && { location }) }).end()
    }
    const outcome = await door.ask().catch((error: Error) => error.message)

    const follows = is !== 'bad' && (door.follows === 'any' || door.follows === is)
    if (follows) expect(outcome).toBe('done')
    else {
      expect(outcome).not.toBe('done')
      expect(outcome).toMatch(
        door.follows === 'none' ? /3\d\d/ : /redirects|private|status 302|(?:answers|answered) 302/
      )
      expect(seen.length).toBeLessThanOrEqual(door.follows === 'none' ? 2 : most)
      expect(seen.filter(({ origin, path }) => origin !== base || path.startsWith(END))).toEqual([])
    }
    // each request asks for the same range, with a credential or without, and no other origin gets one
    expect(new Set(seen.map(({ range }) => range)).size).toBe(1)
    if (door.isRange === true) expect(seen[0]!.range).toMatch(/^bytes=\d+-\d+$/)
    expect(seen.filter(({ origin, hasCredential }) => origin !== base && hasCredential)).toEqual([])
  })
})
