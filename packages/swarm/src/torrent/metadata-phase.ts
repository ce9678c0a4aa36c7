// The first phase of a torrent that was added by its infohash: it requests the info dictionary from peers (BEP 9) and
// does nothing else. It ends with `metadata`, once; the torrent then continues with an ActivePhase, or fails.

import type { Clock } from '@svc/internal-clock'
import { parseInfo, TorrentLayout } from '@svc/metainfo'
import type { Bitfield } from '../bitfield.ts'
import type { Emit, PeerEvent } from '../events.ts'
import type { Peer } from '../peer/peer.ts'
import { protocolError } from '../peer/protocol-error.ts'
import { formatMetadataReject, parseMetadataMessage } from '../wire/extensions.ts'
import { MetadataFetch } from './metadata-fetch.ts'

/** Invariant: nothing but metadata is requested from peers, and no pieces are announced to them. */
export class MetadataPhase {
  readonly state = 'metadata'
  /** Unknown in this phase: peers are greeted without it. */
  readonly have: Bitfield | undefined = undefined
  readonly #fetch: MetadataFetch
  readonly #emit: Emit<'metadata' | 'bad-data' | 'failed'>

  /** `infohash`: 32 bytes. */
  constructor(infohash: Uint8Array, clock: Clock, emit: Emit<'metadata' | 'bad-data' | 'failed'>) {
    this.#emit = emit
    this.#fetch = new MetadataFetch(
      infohash,
      clock,
      (bytes) => this.#done(bytes),
      (event) => emit(event)
    )
  }

  #done(infoBytes: Uint8Array): void {
    let info: ReturnType<typeof parseInfo>
    try {
      info = parseInfo(infoBytes)
      // A layout that cannot work (pieces beyond a receive slot) is refused here, while the error can still be
      // reported.
      new TorrentLayout(info)
    } catch (error) {
      // The bytes match the infohash, so no other peer has better ones.
      return this.#emit({ kind: 'failed', error: error as Error })
    }
    this.#emit({ kind: 'metadata', info })
  }

  /** @throws SwarmError `E_PROTOCOL` when the peer requests something that was never announced to it. */
  take(event: PeerEvent): void {
    switch (event.kind) {
      case 'extended':
        return this.#fetch.offer(event.peer)
      case 'extension':
        if (event.extension === 'ut_metadata') this.#message(event.peer, event.payload)
        return
      case 'request':
        throw protocolError('request', 'a request before it was told of any piece')
      case 'hash-request':
        throw protocolError('hashes', 'a hash request before there is metadata')
      case 'closed':
        return this.#fetch.gone(event.peer)
      default: // the peer object records its pieces and interest until there is metadata
    }
  }

  #message(peer: Peer, payload: Uint8Array): void {
    const message = parseMetadataMessage(payload)
    if (message?.kind === 'request') peer.sendExtension('ut_metadata', formatMetadataReject(message.piece))
    else if (message !== undefined) this.#fetch.message(peer, message)
  }

  /** About once a second. */
  tick(peers: Iterable<Peer>, nowMs: number): void {
    this.#fetch.tick(peers, nowMs)
  }

  async close(): Promise<void> {}

  checkInvariants(): void {
    this.#fetch.checkInvariants()
  }
}
