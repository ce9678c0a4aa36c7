// The first phase of a torrent that was added by its infohash: peers are asked for the info dictionary (BEP 9), and nothing
// else is said or done. It ends with `metadata`, once; the torrent then goes on with an ActivePhase, or fails.

import { parseInfo, TorrentLayout } from '@svc/metainfo'
import type { Bitfield } from '../bitfield.ts'
import type { Emit, PeerEvent } from '../events.ts'
import type { Peer } from '../peer/peer.ts'
import { protocolError } from '../peer/protocol-error.ts'
import { formatMetadataReject, parseMetadataMessage } from '../wire/extensions.ts'
import { MetadataFetch } from './metadata-fetch.ts'

/** Invariant: nothing is requested of peers but metadata, and they are told of no pieces. */
export class MetadataPhase {
  readonly state = 'metadata'
  /** What we have is not known: peers are greeted without it. */
  readonly have: Bitfield | undefined = undefined
  readonly #fetch: MetadataFetch
  readonly #emit: Emit<'metadata' | 'bad-data' | 'failed'>

  /** `infohash`: 32 bytes. */
  constructor(infohash: Uint8Array, emit: Emit<'metadata' | 'bad-data' | 'failed'>) {
    this.#emit = emit
    this.#fetch = new MetadataFetch(
      infohash,
      (bytes) => this.#done(bytes),
      (event) => emit(event)
    )
  }

  #done(infoBytes: Uint8Array): void {
    let info: ReturnType<typeof parseInfo>
    try {
      info = parseInfo(infoBytes)
      // What no layout holds (pieces beyond a receive slot) is refused here: later there is nobody to tell.
      new TorrentLayout(info)
    } catch (error) {
      // The bytes are what the infohash names: no other peer has better ones.
      return this.#emit({ kind: 'failed', error: error as Error })
    }
    this.#emit({ kind: 'metadata', info })
  }

  /** @throws SwarmError `E_PROTOCOL`: the peer asks for what nobody was told of. */
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
      default: // what it has and wants is kept by the peer until there is metadata
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
