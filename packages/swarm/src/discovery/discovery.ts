import type { PeerAddress } from '@svc/internal-net'

/** What a discovery tells about one torrent. */
export interface DiscoverySink {
  /** `trusted`: the one who names the address is itself on a loopback or private address, or of the user's choice. */
  peer(address: PeerAddress, allowPrivate: boolean): void
  warning(error: Error): void
  /** For announces. */
  stats(): { readonly uploaded: number; readonly downloaded: number; readonly left: number }
}

/** A way to find peers for one torrent, running. */
export interface Discovery {
  /** Everything is fetched: seeds are told apart from leechers. */
  completed(): void
  /** Says goodbye where that is customary, within a second or two. */
  close(): Promise<void>
}
