import type { Clock, Timer } from '@svc/internal-clock'
import { SupervisedThread, type ThreadFault, workerUrl } from '@svc/internal-workers'
import { truncateInfohash } from '@svc/metainfo'
import type { Discovery, DiscoverySink } from './discovery.ts'
import { type FromTrackers, parseFromTrackers, type Stats, type ToTrackers } from './messages.ts'

const CLOSE_GRACE_MS = 3_000
/** How long a torrent waits for its trackers to take the "stopped" announce. */
const LEAVE_GRACE_MS = 2_000
/** Largest age of the figures in announces. */
const STATS_INTERVAL_MS = 30_000

/** A torrent to announce. */
export interface TrackerJoin {
  /** http, https and udp URLs; others cause a warning. */
  readonly urls: readonly string[]
  /** The v2 infohash; announces carry it truncated (BEP 52). */
  readonly infohash: Uint8Array
  readonly peerId: Uint8Array
  readonly port: number
  readonly sink: DiscoverySink
}

interface TrackedTorrent {
  readonly join: Extract<ToTrackers, { kind: 'join' }>
  readonly sink: DiscoverySink
  readonly left: PromiseWithResolvers<void>
  stats: Stats
}

/**
 * Announces all torrents of an engine, in a thread that may crash: it is then restarted and announces all of them
 * again.
 */
export class TrackerThread {
  readonly #thread: SupervisedThread<ToTrackers, FromTrackers>
  readonly #joined = new Map<number, TrackedTorrent>()
  readonly #clock: Clock
  readonly #timer: Timer
  #nextId = 1

  constructor(clock: Clock, fault: (fault: ThreadFault) => void) {
    this.#clock = clock
    this.#thread = new SupervisedThread({
      name: 'trackers',
      url: workerUrl('./tracker-worker', import.meta.url),
      data: () => undefined,
      parse: parseFromTrackers,
      received: (message) => this.#received(message),
      started: () => {
        for (const { join, stats } of this.#joined.values()) this.#thread.post({ ...join, stats })
      },
      crashed: (crash) => {
        // The thread that would have said goodbye is gone.
        for (const { left } of this.#joined.values()) left.resolve()
        fault(crash)
      }
    })
    this.#timer = clock.every(STATS_INTERVAL_MS, () => this.#tellStats())
  }

  join({ urls, infohash, peerId, port, sink }: TrackerJoin): Discovery {
    const id = this.#nextId++
    const stats = sink.stats()
    const join = {
      kind: 'join',
      id,
      urls,
      infohash: new Uint8Array(truncateInfohash(infohash)),
      peerId: new Uint8Array(peerId),
      port,
      stats
    } as const
    const joined: TrackedTorrent = { join, sink, left: Promise.withResolvers<void>(), stats }
    this.#joined.set(id, joined)
    this.#thread.post(join)
    return {
      completed: () => this.#thread.post({ kind: 'completed', id, stats: sink.stats() }),
      close: async () => {
        if (!this.#joined.has(id)) return
        this.#thread.post({ kind: 'leave', id, stats: sink.stats() })
        if (!this.#thread.running) joined.left.resolve()
        const timer = this.#clock.after(LEAVE_GRACE_MS, () => joined.left.resolve())
        await joined.left.promise
        timer.cancel()
        this.#joined.delete(id)
      }
    }
  }

  close(): Promise<void> {
    this.#timer.cancel()
    return this.#thread.close({ kind: 'close' }, CLOSE_GRACE_MS)
  }

  #received(message: FromTrackers): void {
    const joined = this.#joined.get(message.id)
    if (joined === undefined) return
    switch (message.kind) {
      case 'peer':
        return joined.sink.peer(message.peer, message.allowPrivate)
      case 'warning':
        return joined.sink.warning(new Error(message.message))
      case 'left':
        return joined.left.resolve()
    }
  }

  #tellStats(): void {
    for (const [id, joined] of this.#joined) {
      const stats = joined.sink.stats()
      const { uploaded, downloaded, left } = joined.stats
      if (stats.uploaded === uploaded && stats.downloaded === downloaded && stats.left === left) continue
      joined.stats = stats
      this.#thread.post({ kind: 'stats', id, stats })
    }
  }
}
