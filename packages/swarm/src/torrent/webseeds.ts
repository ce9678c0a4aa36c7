import type { TorrentLayout } from '@svc/metainfo'
import type { Downloader } from '../download/downloader.ts'
import type { WebseedAllowance } from '../download/origin-gate.ts'
import type { PieceRange } from '../download/picker.ts'
import { Webseed } from '../download/webseed.ts'
import type { Emit, EventOf } from '../events.ts'
import type { TorrentEnvironment } from './environment.ts'

const MAX_RANGE_BYTES = 16 * 1024 * 1024

export interface WebseedsDeps {
  readonly env: Pick<TorrentEnvironment, 'clock' | 'nextId' | 'http' | 'random' | 'webseedHeaders'>
  readonly layout: TorrentLayout
  readonly infohash: Uint8Array
  readonly downloader: Downloader
  /** What may be requested from any webseed at the moment. */
  readonly allowance: () => WebseedAllowance | undefined
  /** See `WebseedOptions`. */
  readonly mine: (piece: number, rank: number) => boolean
  readonly took: (piece: number) => void
  readonly brought: (tookMs: number) => void
  readonly hastened: () => readonly PieceRange[]
  /** Whether a peer on that host already delivers so much that a webseed there would add nothing. */
  readonly isServedBy: (host: string) => boolean
  readonly emit: Emit<'received' | 'warning'>
}

/** The webseeds of a torrent that is being fetched. */
export class Webseeds {
  readonly #deps: WebseedsDeps
  readonly #webseeds = new Map<number, Webseed>()

  constructor(deps: WebseedsDeps) {
    this.#deps = deps
  }

  /** All URLs come from the user or the torrent's magnet. Invalid ones cause a warning. */
  start(urls: readonly string[]): void {
    const { env, layout, infohash, downloader, allowance, mine, took, brought, hastened, isServedBy, emit } = this.#deps
    const userOrigins = new Set(urls.flatMap((url) => (URL.canParse(url) ? [new URL(url).origin] : [])))
    for (const url of urls) {
      try {
        const webseed = new Webseed({
          clock: env.clock,
          id: env.nextId(),
          url,
          layout,
          infohash,
          downloader,
          http: env.http,
          userOrigins,
          maxRangeBytes: MAX_RANGE_BYTES,
          random: env.random,
          allowance,
          mine,
          took,
          brought,
          hastened,
          isServedBy,
          headersFor: env.webseedHeaders,
          emit
        })
        this.#webseeds.set(webseed.id, webseed)
      } catch (error) {
        emit({ kind: 'warning', warning: { kind: 'webseed', source: url, message: (error as Error).message } })
      }
    }
  }

  /** A webseed sent wrong bytes: that file is not requested from it again. False if the sender is not a webseed. */
  bad({ sender, reason, piece }: EventOf<'bad-data'>): boolean {
    const webseed = this.#webseeds.get(sender)
    if (webseed === undefined) return false
    const file = this.#deps.layout.fileOf(piece!)
    webseed.banFile(file)
    const message = `${file.path}: ${reason}`
    this.#deps.emit({ kind: 'warning', warning: { kind: 'webseed', source: webseed.url, message, lied: true } })
    return true
  }

  /** Rate in bytes per second, and the number of webseeds that answer. */
  get status(): { readonly downloadRate: number; readonly active: number } {
    let downloadRate = 0
    let active = 0
    for (const webseed of this.#webseeds.values()) {
      downloadRate += webseed.down.bytesPerSecond
      if (webseed.active) active += 1
    }
    return { downloadRate, active }
  }

  pump(): void {
    for (const webseed of this.#webseeds.values()) webseed.pump()
  }

  /** About once a second. */
  tick(nowMs: number): void {
    for (const webseed of this.#webseeds.values()) webseed.down.tick(nowMs)
    this.pump()
  }

  close(): void {
    for (const webseed of this.#webseeds.values()) webseed.close()
    this.#webseeds.clear()
  }
}
