import type { Clock } from '@svc/internal-clock'
import { type TrackerOptions, Trackers } from '@svc/internal-discovery'
import { truncateInfohash } from '@svc/metainfo'
import { guarded } from '../net/guarded.ts'
import type { Discovery, DiscoverySink } from './discovery.ts'

/** How long a torrent waits for its trackers to take the "stopped" announce: a name may take longer to resolve. */
const LEAVE_GRACE_MS = 2_000

/**
 * Announces a torrent to its trackers, by its v2 infohash, truncated (BEP 52). Those that are not in `strangers` were named
 * by the user, or by a magnet that the user chose.
 */
export function joinTrackers(
  {
    urls,
    strangers,
    ...torrent
  }: Pick<TrackerOptions, 'urls' | 'infohash' | 'peerId' | 'port'> & { readonly strangers: ReadonlySet<string> },
  sink: DiscoverySink,
  clock: Clock
): Discovery {
  const all = (['owner', 'internet'] as const).map(
    (policy) =>
      new Trackers({
        ...torrent,
        urls: urls.filter((url) => strangers.has(url) === (policy === 'internet')),
        infohash: truncateInfohash(torrent.infohash),
        clock,
        policy,
        stats: () => sink.stats(),
        found: guarded((peer, allowPrivate) => sink.peer(peer, allowPrivate)),
        warn: guarded((message) => sink.warning(new Error(message)))
      })
  )
  return {
    completed: () => all.forEach((trackers) => trackers.completed()),
    close: async () => {
      const left = Promise.withResolvers<void>()
      const timer = clock.after(LEAVE_GRACE_MS, left.resolve)
      await Promise.race([Promise.all(all.map((trackers) => trackers.close())), left.promise])
      timer.cancel()
    }
  }
}
