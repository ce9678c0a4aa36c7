import { type Clock, systemClock, type Timer, within } from '@svc/internal-clock'
import type { DialPolicy, PeerAddress } from '@svc/internal-net'
import { ANNOUNCE_TIMEOUT_MS, type Announce, type AnnounceEvent } from './announce.ts'
import { announceHttp } from './http-announce.ts'
import { type TrackerUrl, tryParseTrackerUrl } from './tracker-url.ts'
import { announceUdp } from './udp-announce.ts'

/** Lower limit of the interval, whatever a tracker requests. */
const MIN_INTERVAL_MS = 1_000
const MAX_INTERVAL_MS = 86_400_000
const DEFAULT_INTERVAL_MS = 1_800_000
/** Delay after a failed announce; doubles up to the usual interval. */
const FIRST_RETRY_MS = 15_000
/** A tracker that does not answer must not delay leaving. */
const GOODBYE_MS = 1_500

export interface TrackerOptions {
  /** `http`, `https` and `udp` URLs; others cause a warning. */
  readonly urls: readonly string[]
  /** 20 bytes. */
  readonly infohash: Uint8Array
  /** 20 bytes. */
  readonly peerId: Uint8Array
  readonly port: number
  /** On whose word the trackers are contacted. */
  readonly policy: DialPolicy
  /** Byte counts so far. */
  readonly stats: () => { readonly uploaded: number; readonly downloaded: number; readonly left: number }
  /** `allowPrivate`: the tracker answered from a private address itself. */
  readonly found: (peer: PeerAddress, allowPrivate: boolean) => void
  readonly warn: (message: string) => void
  readonly clock?: Clock
}

/** Announces one torrent to its trackers, independently: a tracker that fails does not affect the others. */
export class Trackers {
  readonly #trackers: readonly OneTracker[]

  constructor(options: TrackerOptions) {
    const targets = new Map<string, TrackerUrl>()
    for (const text of options.urls) {
      const target = tryParseTrackerUrl(text)
      if (target) targets.set(target.url.href, target)
      else options.warn('ignoring a tracker: only http, https and udp URLs with a host and a port are supported')
    }
    this.#trackers = [...targets.values()].map((target) => new OneTracker(target, options))
  }

  completed(): void {
    for (const tracker of this.#trackers) tracker.announce('completed')
  }

  /** Announces that we stop, within a second or two. Idempotent. */
  async close(): Promise<void> {
    await Promise.all(this.#trackers.map((tracker) => tracker.close()))
  }
}

/** Invariant: at most one announce runs at a time; `#next` waits for its end, and a later one replaces it. */
class OneTracker {
  readonly #target: TrackerUrl
  readonly #options: TrackerOptions
  readonly #clock: Clock
  #trackerId: Uint8Array | undefined
  #busy: Promise<void> | undefined
  #next: AnnounceEvent | undefined
  #known = false
  /** Closing cut it off: the tracker may have heard of us, although we never read its answer. */
  #wasCut = false
  #retryMs = FIRST_RETRY_MS
  #timer: Timer | undefined
  #abort = new AbortController()
  #closing: Promise<void> | undefined

  constructor(target: TrackerUrl, options: TrackerOptions) {
    this.#target = target
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.announce('started')
  }

  announce(event: AnnounceEvent | undefined): void {
    if (this.#closing !== undefined) return
    if (this.#busy !== undefined) {
      this.#next = event ?? this.#next
      return
    }
    this.#timer?.cancel()
    this.#busy = this.#announce(event, this.#abort.signal).then((waitMs) => {
      this.#busy = undefined
      if (this.#closing !== undefined) return
      const next = this.#next
      this.#next = undefined
      if (next !== undefined) this.announce(next)
      // until a tracker has answered, announces say that we have just started.
      else this.#timer = this.#clock.after(waitMs, () => this.announce(this.#known ? undefined : 'started'))
    })
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    this.#timer?.cancel()
    this.#abort.abort()
    await this.#busy
    if (!this.#known && !this.#wasCut) return
    await within(this.#clock, GOODBYE_MS, undefined, (signal) => this.#announce('stopped', signal))
  }

  /** Never rejects. @returns the time until the next announce */
  async #announce(event: AnnounceEvent | undefined, signal: AbortSignal): Promise<number> {
    const { infohash, peerId, port, policy, stats, found, warn } = this.#options
    const { url } = this.#target
    const announce: Announce = { infohash, peerId, port, ...stats(), event, trackerId: this.#trackerId }
    const send = url.protocol === 'udp:' ? announceUdp : announceHttp
    try {
      const answer = await within(this.#clock, ANNOUNCE_TIMEOUT_MS, signal, (limited) =>
        send(this.#target, announce, policy, limited, this.#clock)
      )
      this.#known = true
      this.#retryMs = FIRST_RETRY_MS
      this.#trackerId = answer.trackerId ?? this.#trackerId
      if (answer.warning !== undefined) warn(`tracker ${url.host}: ${answer.warning}`)
      if (event !== 'stopped') for (const peer of answer.peers) found(peer, answer.byPrivate)
      return boundedInterval(answer.intervalMs)
    } catch (error) {
      const waitMs = this.#retryMs
      this.#retryMs = Math.min(DEFAULT_INTERVAL_MS, waitMs * 2)
      if (this.#abort.signal.aborted) this.#wasCut = true
      else warn(`tracker ${url.host}: ${(error as Error).message}`)
      return waitMs
    }
  }
}

function boundedInterval(ms: number | undefined): number {
  if (ms === undefined || !Number.isFinite(ms) || ms < 0) return DEFAULT_INTERVAL_MS
  return Math.min(MAX_INTERVAL_MS, Math.max(MIN_INTERVAL_MS, ms))
}
