import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  BufferPool,
  GuardedListener,
  HARDENING,
  type ListenerOptions,
  refuse,
  type SendBudget,
  sendBlob,
  sendBytes,
  type TrafficCounter
} from '@svc/internal-server'
import type { Library } from '@svc/library/parts'
import type { ArtifactTorrent } from '@svc/manifest'
import { encodePieceLayers, encodeTorrent, type PieceLayers, toHex } from '@svc/metainfo'

/** The files that the listener serves of one artifact. */
export interface ServedArtifact {
  readonly torrent: ArtifactTorrent
  readonly layers: PieceLayers
}

interface ServedEntry extends ServedArtifact {
  /** Running responses. */
  readonly answers: Set<ServerResponse>
  layersBytes?: Uint8Array
}

export interface WebseedListenerDeps extends Pick<Library, 'store' | 'log' | 'clock'> {
  /** The peers' budget: the limit applies to both together (spec swarm.9), and may change. Absent: no limit. */
  readonly budget?: (SendBudget & { readonly limited: boolean }) | undefined
}

/** Two of these for each of at most 512 connections of strangers. */
const WEBSEED_CHUNK_BYTES = 256 << 10

/**
 * The node's plain-HTTP webseed (spec swarm.12, swarm.13): files (BEP 19), `/bt/piece-layers/<infohash>`,
 * `/bt/<infohash>.torrent`. Serves only seeded artifacts, lists none, and refuses what a web page could send.
 */
export class WebseedListener {
  readonly #deps: WebseedListenerDeps
  readonly #pool = new BufferPool(WEBSEED_CHUNK_BYTES)
  readonly #byInfohash = new Map<string, ServedEntry>()
  /** A torrent's name has 12 digits of a digest: different artifacts may have the same one. */
  readonly #byName = new Map<string, Set<ServedEntry>>()
  #listener!: GuardedListener

  private constructor(deps: WebseedListenerDeps) {
    this.#deps = deps
  }

  /** @throws the error of `listen`, e.g. EADDRINUSE. */
  static async listen(
    deps: WebseedListenerDeps,
    address: { readonly host: string; readonly port: number },
    traffic?: TrafficCounter
  ): Promise<WebseedListener> {
    const { store, log } = deps
    const webseed = new WebseedListener(deps)
    const answer: ListenerOptions['answer'] = (request, response, url) => webseed.#route(request, response, url)
    const requireStore = (): void => store.requireRoot()
    webseed.#listener = await GuardedListener.listen({ name: 'webseed', address, requireStore, answer, log, traffic })
    return webseed
  }

  get address(): { readonly host: string; readonly port: number } {
    return this.#listener.address
  }

  serve(artifact: ServedArtifact): void {
    const { torrent } = artifact
    const infohash = toHex(torrent.infohash)
    // all that is served follows from it
    if (this.#byInfohash.has(infohash)) return
    const entry: ServedEntry = { ...artifact, answers: new Set() }
    this.#byInfohash.set(infohash, entry)
    const named = this.#byName.get(torrent.name) ?? new Set()
    this.#byName.set(torrent.name, named.add(entry))
  }

  /** Running responses end, too. */
  withdraw({ name, infohash }: Pick<ArtifactTorrent, 'name' | 'infohash'>): void {
    const served = this.#byInfohash.get(toHex(infohash))
    if (served === undefined) return
    this.#byInfohash.delete(toHex(infohash))
    const named = this.#byName.get(name)
    named?.delete(served)
    if (named?.size === 0) this.#byName.delete(name)
    for (const answer of served.answers) answer.destroy()
  }

  close(): Promise<void> {
    return this.#listener.close()
  }

  async #route(request: IncomingMessage, response: ServerResponse, url: string): Promise<void> {
    const notFound = (): void => refuse(response, 404, 'E_NOT_FOUND', 'there is no such path')
    const path = url.split('?', 1)[0]!
    const layers = /^\/bt\/piece-layers\/([0-9a-f]{64})$/.exec(path)
    if (layers !== null) {
      const served = this.#byInfohash.get(layers[1]!)
      if (served === undefined) return notFound()
      served.layersBytes ??= encodePieceLayers(served.layers, served.torrent)
      return sendBytes(request, response, served.layersBytes, { 'Content-Type': 'application/octet-stream' })
    }
    const torrent = /^\/bt\/([0-9a-f]{64})\.torrent$/.exec(path)
    if (torrent !== null) {
      const served = this.#byInfohash.get(torrent[1]!)
      if (served === undefined) return notFound()
      const host = request.headers.host!
      const webseeds = [`http://${/:\d+$/.test(host) ? host : `${host}:${request.socket.localPort}`}/`]
      return sendBytes(request, response, encodeTorrent(served.torrent, served.layers, { webseeds }), {
        'Content-Type': 'application/x-bittorrent'
      })
    }
    const { served, digest } = this.#fileAt(path) ?? {}
    if (served === undefined || digest === undefined) return notFound()
    const { store, budget, clock } = this.#deps
    const reader = await store.open(digest).catch((error: { code?: unknown }) => {
      if (error.code === 'E_NOT_FOUND') return undefined
      throw error
    })
    if (reader === undefined) return notFound()
    if (this.#byInfohash.get(toHex(served.torrent.infohash)) !== served) {
      await reader.close()
      return notFound()
    }
    served.answers.add(response)
    try {
      await sendBlob(request, response, reader, {
        pool: this.#pool,
        budget: budget?.limited === true ? budget : undefined,
        clock,
        headers: HARDENING,
        refuse: (status, headers) =>
          status === 416
            ? refuse(response, 416, 'E_RANGE_INVALID', 'the range does not overlap the file', headers)
            : refuse(response, 412, 'E_PRECONDITION_FAILED', 'If-Match names another file', headers)
      })
    } finally {
      served.answers.delete(response)
    }
  }

  /**
   * `/<torrent name>/<path>` with each segment percent-encoded; `+` is not a space. Of several artifacts with one name, a
   * path is found only if they have no different files there: nobody gets the file of another artifact.
   */
  #fileAt(path: string) {
    const [empty, name, ...segments] = path.split('/')
    const named = empty === '' && name !== undefined ? this.#byName.get(name) : undefined
    if (named === undefined || segments.length === 0) return undefined
    let wanted: string
    try {
      wanted = segments.map(decodeURIComponent).join('/')
    } catch {
      return undefined
    }
    // compared with the torrents' files, never with the disk
    const found = [...named].flatMap((served) =>
      served.torrent.files.filter((file) => file.path === wanted).map(({ digest }) => ({ served, digest }))
    )
    return found.every(({ digest }) => digest === found[0]!.digest) ? found[0] : undefined
  }
}
