import type { Clock } from '@svc/internal-clock'
import { Trackers } from '@svc/internal-discovery'
import { truncateInfohash } from '@svc/metainfo'
import { guarded } from '../net/guarded.ts'
import type { Discovery, DiscoverySink } from './discovery.ts'

/** How long a torrent waits for its trackers to take the "stopped" announce: a name may take longer to resolve. */
const LEAVE_GRACE_MS = 2_000

/** A torrent to announce. */
export interface TrackerJoin {
  /** http, https and udp URLs; others cause a warning. */
  readonly urls: readonly string[]
  /** The v2 infohash; announces carry it truncated (BEP 52). */
  readonly infohash: Uint8Array
  readonly peerId: Uint8Array
  readonly port: number
  readonly sink: DiscoverySink
  readonly clock: Clock
}

/** Announces a torrent to its trackers. */
export function joinTrackers({ urls, infohash, peerId, port, sink, clock }: TrackerJoin): Discovery {
  const trackers = new Trackers({
    urls,
    infohash: truncateInfohash(infohash),
    peerId,
    port,
    clock,
    // These trackers were named by the user, or by a magnet that the user chose.
    policy: 'owner',
    stats: () => sink.stats(),
    found: guarded((peer, allowPrivate) => sink.peer(peer, allowPrivate)),
    warn: guarded((message) => sink.warning(new Error(message)))
  })
  return {
    completed: () => trackers.completed(),
    close: async () => {
      const left = Promise.withResolvers<void>()
      const timer = clock.after(LEAVE_GRACE_MS, left.resolve)
      await Promise.race([trackers.close(), left.promise])
      timer.cancel()
    }
  }
}
