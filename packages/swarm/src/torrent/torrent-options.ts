import type { PeerAddress } from '@svc/internal-net'
import type { PieceLayers, TorrentInfo } from '@svc/metainfo'
import type { TorrentStorage } from '../storage.ts'

/** What `Swarm.add` needs to know. Exactly one of `info`, `infohash` and `magnet` is given. */
export interface TorrentOptions {
  /** The info dictionary's bytes, or a parsed one. */
  readonly info?: Uint8Array | TorrentInfo
  /** 32 bytes: the metadata is fetched from peers and must hash to it. */
  readonly infohash?: Uint8Array
  /** Its trackers, webseeds and peers are used besides those given here. */
  readonly magnet?: string
  /** By pieces root in hex; each is proven before use, what is missing is fetched from peers. */
  readonly pieceLayers?: PieceLayers
  readonly storage: TorrentStorage
  readonly trackers?: readonly string[]
  readonly webseeds?: readonly string[]
  /** `host:port`; private addresses are fine here, the user gave them. */
  readonly peers?: readonly (string | PeerAddress)[]
  /** True: nothing is ever requested; what the storage lacks is not offered. */
  readonly seedOnly?: boolean
  /** False: no bytes are uploaded. Default true. */
  readonly upload?: boolean
  /** False: peers get neither metadata nor hashes, which tell names and sizes of the files. Default true. */
  readonly disclose?: boolean
  /** False: no addresses are exchanged with peers. Default: as the engine. */
  readonly pex?: boolean
  /** Bytes per second; 0: unlimited. */
  readonly uploadLimit?: number
  /** False: not announced to the DHT. Default: as the engine. */
  readonly dht?: boolean
}
