import type { IncomingMessage, OutgoingHttpHeaders, Server, ServerResponse } from 'node:http'
import { type AddressInfo, isIP } from 'node:net'
import type { BlobStore } from '@svc/cas'
import type { ErrorCode } from '@svc/client/protocol'
import type { ArtifactTorrent } from '@svc/manifest'
import { encodePieceLayers, encodeTorrent, type PieceLayers, toHex } from '@svc/metainfo'
import type { Sha256Digest } from '@svc/ref'
import type { SendBudget } from '../http/blob-pump.ts'
import { sendBlob } from '../http/blob-response.ts'
import { BufferPool } from '../http/buffer-pool.ts'
import { envelope, JSON_TYPE } from '../http/envelope.ts'
import { createHttpServer } from '../http/server.ts'
import type { Log } from '../log.ts'

/** What the listener gives away of one artifact. */
export interface ServedArtifact {
  readonly torrent: ArtifactTorrent
  readonly layers: PieceLayers
}

/** Sent with everything: a browser must neither run, frame nor guess what this port holds. */
const HARDENING: OutgoingHttpHeaders = {
  'X-Content-Type-Options': 'nosniff',
  'Content-Security-Policy': "default-src 'none'; sandbox",
  'Content-Disposition': 'attachment',
  'Cross-Origin-Resource-Policy': 'same-origin'
}
const MAX_PATH_CHARACTERS = 8_192
/** Two of these for each of at most 512 connections of strangers. */
const WEBSEED_CHUNK_BYTES = 256 << 10

/**
 * The plain-HTTP webseed of the node (spec swarm.12, swarm.13): `/<torrent name>/<path>` (BEP 19),
 * `/bt/piece-layers/<infohash>`, `/bt/<infohash>.torrent`. Serves seeded artifacts and nothing else, never lists, and
 * refuses what a page in a browser could send.
 */
export class WebseedListener {
  readonly #server: Server
  readonly #store: BlobStore
  readonly #log: Log
  readonly #pool = new BufferPool(WEBSEED_CHUNK_BYTES)
  readonly #byName = new Map<string, ServedArtifact>()
  readonly #byInfohash = new Map<string, ServedArtifact & { layersBytes?: Uint8Array }>()
  readonly #configuredHost: string
  #budget: SendBudget | undefined

  private constructor(store: BlobStore, log: Log, configuredHost: string) {
    this.#store = store
    this.#log = log
    this.#configuredHost = configuredHost.toLowerCase()
    this.#server = createHttpServer((request, response) => void this.#answer(request, response), {
      limits: { maxConnections: 512 }
    })
  }

  /** @throws the error of `listen`, e.g. EADDRINUSE. */
  static async listen(
    store: BlobStore,
    log: Log,
    address: { readonly host: string; readonly port: number }
  ): Promise<WebseedListener> {
    const listener = new WebseedListener(store, log, address.host)
    await new Promise<void>((resolve, reject) => {
      listener.#server.once('error', reject)
      listener.#server.listen(address.port, address.host, () => {
        listener.#server.off('error', reject)
        resolve()
      })
    })
    listener.#server.on('error', (error) => log.error({ err: error }, 'the webseed listener failed'))
    return listener
  }

  get address(): { readonly host: string; readonly port: number } {
    const { address, port } = this.#server.address() as AddressInfo
    return { host: address, port }
  }

  /** `[swarm] upload_limit` holds over peers and this listener together (spec swarm.9). */
  shareBudget(budget: SendBudget | undefined): void {
    this.#budget = budget
  }

  serve(artifact: ServedArtifact): void {
    this.#byName.set(artifact.torrent.name, artifact)
    this.#byInfohash.set(toHex(artifact.torrent.infohash), { ...artifact })
  }

  withdraw(torrent: Pick<ArtifactTorrent, 'name' | 'infohash'>): void {
    this.#byName.delete(torrent.name)
    this.#byInfohash.delete(toHex(torrent.infohash))
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    this.#server.closeAllConnections()
    await closed
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('error', () => response.destroy())
    try {
      if (!this.#isOwnHost(request))
        return refuse(request, response, 421, 'E_BAD_REQUEST', 'this port answers to its own address only')
      const { origin, 'sec-fetch-site': site } = request.headers
      if (origin !== undefined || (site !== undefined && site !== 'none')) {
        return refuse(request, response, 403, 'E_BAD_REQUEST', 'pages in a browser are not served')
      }
      if (request.method !== 'GET' && request.method !== 'HEAD') {
        return refuse(request, response, 405, 'E_METHOD_NOT_ALLOWED', 'this port answers GET and HEAD', {
          Allow: 'GET, HEAD'
        })
      }
      await this.#route(request, response, request.url ?? '/')
    } catch (error) {
      this.#log.error({ err: error, url: request.url?.slice(0, 200) }, 'a webseed request failed')
      if (response.headersSent) response.destroy()
      else refuse(request, response, 500, 'E_INTERNAL', 'the daemon failed unexpectedly; its log has the details')
    }
  }

  async #route(request: IncomingMessage, response: ServerResponse, url: string): Promise<void> {
    const notFound = (): void => refuse(request, response, 404, 'E_NOT_FOUND', 'there is nothing of that name')
    if (url.length > MAX_PATH_CHARACTERS) return notFound()
    const path = url.split('?', 1)[0]!
    const layers = /^\/bt\/piece-layers\/([0-9a-f]{64})$/.exec(path)
    if (layers !== null) {
      const served = this.#byInfohash.get(layers[1]!)
      if (served === undefined) return notFound()
      served.layersBytes ??= encodePieceLayers(served.layers, served.torrent)
      return sendBytes(request, response, served.layersBytes, 'application/octet-stream')
    }
    const torrent = /^\/bt\/([0-9a-f]{64})\.torrent$/.exec(path)
    if (torrent !== null) {
      const served = this.#byInfohash.get(torrent[1]!)
      if (served === undefined) return notFound()
      const host = request.headers.host!
      const webseeds = [`http://${/:\d+$/.test(host) ? host : `${host}:${request.socket.localPort}`}/`]
      return sendBytes(
        request,
        response,
        encodeTorrent(served.torrent, served.layers, { webseeds }),
        'application/x-bittorrent'
      )
    }
    const digest = this.#fileAt(path)
    if (digest === undefined) return notFound()
    const reader = await this.#store.open(digest).catch((error: { code?: unknown }) => {
      if (error.code === 'E_NOT_FOUND') return undefined
      throw error
    })
    if (reader === undefined) return notFound()
    await sendBlob(request, response, reader, {
      pool: this.#pool,
      budget: this.#budget,
      headers: HARDENING,
      refuse: (status, headers) =>
        status === 416
          ? refuse(request, response, 416, 'E_RANGE_INVALID', 'no part of the file is asked for', headers)
          : refuse(request, response, 412, 'E_PRECONDITION_FAILED', 'If-Match names another file', headers)
    })
  }

  /** `/<torrent name>/<path>` with each segment percent-encoded; `+` is no space. */
  #fileAt(path: string): Sha256Digest | undefined {
    const [empty, name, ...segments] = path.split('/')
    const served = empty === '' && name !== undefined ? this.#byName.get(name) : undefined
    if (served === undefined || segments.length === 0) return undefined
    let wanted: string
    try {
      wanted = segments.map(decodeURIComponent).join('/')
    } catch {
      return undefined
    }
    // compared with what the torrent has, never with the disk
    return served.torrent.files.find((file) => file.path === wanted)?.digest
  }

  /** Names that a foreign page could bind to this address (DNS rebinding) do not count. */
  #isOwnHost(request: IncomingMessage): boolean {
    const { localAddress, localPort } = request.socket
    const host = request.headers.host?.toLowerCase()
    if (host === undefined || localAddress === undefined) return false
    const ip = localAddress.replace(/^::ffff:(?=\d+\.)/, '')
    const own = [isIP(ip) === 6 ? `[${ip}]` : ip, this.#configuredHost]
    const names = ip === '127.0.0.1' || ip === '::1' ? [...own, 'localhost'] : own
    // libtorrent leaves the port out; a browser never does
    return names.some((name) => host === `${name}:${localPort}`) || own.includes(host)
  }
}

function sendBytes(request: IncomingMessage, response: ServerResponse, bytes: Uint8Array, type: string): void {
  response.writeHead(200, { ...HARDENING, 'Content-Type': type, 'Content-Length': bytes.length })
  response.end(request.method === 'HEAD' ? undefined : bytes)
}

function refuse(
  request: IncomingMessage,
  response: ServerResponse,
  status: number,
  code: ErrorCode,
  message: string,
  headers: OutgoingHttpHeaders = {}
): void {
  const body = JSON.stringify(envelope(code, message))
  response.writeHead(status, {
    ...HARDENING,
    ...headers,
    'Content-Type': JSON_TYPE,
    'Content-Length': Buffer.byteLength(body)
  })
  response.end(request.method === 'HEAD' ? undefined : body)
}
