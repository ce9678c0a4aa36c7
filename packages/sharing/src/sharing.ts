import type { ImportedModels, WorkOptions } from '@svc/library'
import type { Shared } from './share.ts'
import type { HeldBack, Verifying } from './status.ts'

/** Where to listen. */
export interface Listening {
  /** An IP address; default: all of this machine's. */
  readonly host?: string
  /** Default: one of the system's choice. */
  readonly port?: number
}

/** How the models of a library are shared. */
export interface SharingOptions {
  /** Whether complete models are announced and given; false: only fetches. Default: true. */
  readonly seed?: boolean
  /** For peers. */
  readonly peer?: Listening
  /** For programs that fetch over HTTP, as a webseed. Default: nowhere. */
  readonly webseed?: Listening | undefined
  /** Whether peers are found, and found by others, through the DHT. Default: true. */
  readonly dht?: boolean
  /** Whether peers of the local network are found by multicast. Default: false. */
  readonly lsd?: boolean
  /** Announced to in addition to those that each model came with. */
  readonly trackers?: readonly string[]
  /** Default: no limit. */
  readonly uploadLimitBytesPerSecond?: number
  /** Whether a start announces models without hashing them again. Default: false. */
  readonly noSeedVerify?: boolean
  /** A fetch without a byte for this long fails. Default: ten minutes. */
  readonly fillTimeoutMs?: number
}

/** What somebody shares: a magnet says from whom, the pin what it must be. */
export interface SharedModel extends Pick<Shared, 'magnet' | 'manifestDigest' | 'companions'> {}

/** What sharing does now. */
export interface SharingStatus {
  /** How many models are given to peers. */
  readonly seeding: number
  /** Which are not, though they are here, and why. */
  readonly heldBack: readonly HeldBack[]
  /** While the start hashes models before it announces them. */
  readonly verifying?: Verifying
  readonly peers: number
  readonly downBytesPerSecond: number
  readonly upBytesPerSecond: number
  /** Of models, since the start. */
  readonly downloadedBytes: number
  readonly uploadedBytes: number
  /** `host:port` of the listeners. */
  readonly peerAddress?: string
  readonly webseedAddress?: string
}

/** The models of a library and their peers, until `close`. */
export interface ModelSharing {
  /**
   * Announces a model, if nothing prevents that, and says what somebody else needs to fetch it.
   * @throws as `resolve` of the library; `E_NOT_FOUND`
   */
  share(ref: string): Promise<Shared>
  /**
   * Fetches a model that somebody shares, from peers and webseeds, and keeps it under a name `ns/name`. Verified bytes stay
   * when it fails or is ended: another call, or `ensure` of the library, goes on.
   * @throws LibraryError `E_INVALID`, `E_SOURCE_UNAVAILABLE`, `E_NOT_IMPORTABLE`, `E_NO_SPACE`; the signal's reason
   */
  fetch(model: SharedModel, as: string, options?: WorkOptions): Promise<ImportedModels>
  status(): Promise<SharingStatus>
  /** Leaves all swarms, and ends listening. Idempotent. */
  close(): Promise<void>
}
