import { Webseed, type WebseedContext } from '../download/webseed.ts'
import type { EventOf } from '../events.ts'
import type { TorrentParts } from './environment.ts'

/** Bytes per second: more than anyone would set as an upload limit, and less than a gigabit network carries. */
const PLENTY = 32 * 1024 * 1024

/** The webseeds of a torrent that is being fetched. */
export class Webseeds {
  readonly #context: WebseedContext
  readonly #webseeds = new Map<number, Webseed>()

  constructor(parts: Omit<WebseedContext, 'isServedBy'> & Pick<TorrentParts, 'peers'>) {
    this.#context = { ...parts, isServedBy: (host) => givesPlenty(parts, host) }
  }

  /** URLs come from the user or the torrent's magnet, but for those in `strangers`. Invalid ones cause a warning. */
  start(urls: readonly string[], strangers: ReadonlySet<string>): void {
    const vouched = urls.filter((url) => !strangers.has(url))
    const userOrigins = new Set(vouched.flatMap((url) => (URL.canParse(url) ? [new URL(url).origin] : [])))
    for (const url of urls) {
      try {
        const webseed = new Webseed(this.#context, url, userOrigins)
        this.#webseeds.set(webseed.id, webseed)
      } catch (error) {
        this.#context.emit({
          kind: 'warning',
          warning: { kind: 'webseed', source: url, message: (error as Error).message }
        })
      }
    }
  }

  /** A webseed sent wrong bytes: that file is not requested from it again. False if the sender is not a webseed. */
  bad({ sender, reason, piece }: EventOf<'bad-data'>): boolean {
    const webseed = this.#webseeds.get(sender)
    if (webseed === undefined) return false
    const file = this.#context.layout.fileOf(piece!)
    webseed.banFile(file)
    const message = `${file.path}: ${reason}`
    this.#context.emit({ kind: 'warning', warning: { kind: 'webseed', source: webseed.url, message, lied: true } })
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

  tick(nowMs: number): void {
    for (const webseed of this.#webseeds.values()) webseed.down.tick(nowMs)
    this.pump()
  }

  close(): void {
    for (const webseed of this.#webseeds.values()) webseed.close()
    this.#webseeds.clear()
  }
}

/**
 * Whether a peer on that host (an IP address) delivers so much that the webseed of the same machine can pause. One of
 * our nodes announces both; a byte costs both sides less over the peer protocol, and they share one network and one
 * limit. A webseed elsewhere, or that of a slow peer, is used as usual.
 */
function givesPlenty({ env, peers }: Pick<WebseedContext, 'env'> & Pick<TorrentParts, 'peers'>, host: string): boolean {
  for (const peer of peers.values())
    if (!peer.peerChoking && peer.remoteHost === host && peer.down.recent(env.clock.monotonic()) >= PLENTY) return true
  return false
}
