import type { PeerAddress } from '@svc/internal-net'

/** Where a discovery reports what it finds for one torrent. */
export interface DiscoverySink {
  /** `allowPrivate`: who named the address may name loopback and private ones, being on such an address itself. */
  peer(address: PeerAddress, allowPrivate: boolean): void
  warning(error: Error): void
  /** For announces. */
  stats(): { readonly uploaded: number; readonly downloaded: number; readonly left: number }
}

/** A way to find peers for one torrent, running. */
export interface Discovery {
  /** Everything is fetched: trackers count us as a seed from now on. */
  completed(): void
  /** Stops; trackers are told that we leave, for which they have a second or two. */
  close(): Promise<void>
}
