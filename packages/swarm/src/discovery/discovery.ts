import type { PeerAddress } from '@svc/internal-net'

/** Receives what a discovery finds for one torrent. */
export interface DiscoverySink {
  /** `allowPrivate`: the source is on a loopback or private address itself, so it may name such addresses. */
  peer(address: PeerAddress, allowPrivate: boolean): void
  warning(error: Error): void
  /** The figures for announces. */
  stats(): { readonly uploaded: number; readonly downloaded: number; readonly left: number }
}

/** A running source of peers for one torrent. */
export interface Discovery {
  /** The download is complete: trackers count us as a seed from now on. */
  completed?(): void
  /** Stops. Trackers are told that we leave, with a second or two to take note. */
  close(): Promise<void>
}
