import type { PeerAddress } from '@svc/internal-net'
import type { PieceLayers, TorrentInfo } from '@svc/metainfo'
import type { TorrentStorage } from '../storage.ts'

/** Options of `Swarm.add`. Exactly one of `info`, `infohash` and `magnet` is required. */
export interface TorrentOptions {
  /** The info dictionary's bytes, or a parsed one. */
  readonly info?: Uint8Array | TorrentInfo
  /** 32 bytes: the metadata is fetched from peers and verified. */
  readonly infohash?: Uint8Array
  /** Its trackers, webseeds and peers are added to those given here. */
  readonly magnet?: string
  /** By pieces root in hex; each is verified before use, missing ones are fetched from peers. */
  readonly pieceLayers?: PieceLayers
  readonly storage: TorrentStorage
  readonly trackers?: readonly string[]
  readonly webseeds?: readonly string[]
  /** `host:port`; private addresses are allowed here. */
  readonly peers?: readonly (string | PeerAddress)[]
  /** Those of `trackers`, `webseeds` and `peers` that nobody vouches for: of these, only public addresses are dialled. */
  readonly strangers?: readonly string[]
  /** True: nothing is ever requested; missing pieces are not offered. */
  readonly seedOnly?: boolean
  /**
   * True: this is where the bytes come from at first. Peers within `trusted` are told of a few pieces each, so that everything leaves
   * once and they give it to one another (BEP 16); others are served as by any seed. Default false.
   */
  readonly firstSeed?: boolean
  /** False: no bytes are uploaded. Default true. */
  readonly upload?: boolean
  /** False: peers get neither metadata nor hashes, which reveal names and sizes of the files. Default true. */
  readonly disclose?: boolean
  /** False: no peer exchange. Default: that of the engine. */
  readonly pex?: boolean
  /** False: not announced to the DHT. Default: that of the engine. */
  readonly dht?: boolean
}
