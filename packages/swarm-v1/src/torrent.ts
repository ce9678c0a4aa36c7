import type { Clock, Timer } from '@svc/internal-clock'
import { tryParseAddress } from '@svc/internal-net'
import { SwarmV1Error } from './errors.ts'
import type { V1Layout } from './layout.ts'
import type { FromThread, ToThread, V1Progress } from './messages.ts'
import { Pieces, type V1Storage } from './pieces.ts'

/** How to join a torrent. */
export interface V1JoinOptions {
  /** 40 lower-case hex characters. */
  readonly infohash: string
  /** The info dictionary if it is already known (seeding after a restart); checked against the infohash. */
  readonly info?: Uint8Array
  /** HTTP and UDP trackers; others are ignored. */
  readonly trackers: readonly string[]
  /** On whose word these trackers are contacted, if it allows less than that of the swarm. */
  readonly policy?: 'internet'
  /** `host:port`; invalid ones are ignored. */
  readonly peers: readonly string[]
  /** Only `peers` hear of it: no tracker, DHT or peer exchange is used. Default false. */
  readonly quiet?: boolean
  readonly metadataTimeoutMs: number
  /** Every piece is there and was verified by other means: only a sample is checked. */
  readonly complete?: boolean
  readonly signal?: AbortSignal
  /**
   * Called once with the validated layout, before any content is requested. If it throws, the swarm is left, and
   * `ready` and `done` reject with that error.
   */
  open(layout: V1Layout): Promise<V1Storage>
  /** A peer that sent bad pieces was dropped, or a tracker fails; `message` names it. */
  readonly onWarning?: (message: string) => void
}

/** A torrent that was joined. */
export interface V1Torrent {
  readonly infohash: string
  /** Resolves when the metadata is validated and the storage is open. */
  readonly ready: Promise<V1Layout>
  /** Resolves when every piece is verified and written. Rejects when the storage fails, on `leave` and on abort. */
  readonly done: Promise<void>
  /** Updated every quarter of a second. */
  progress(): V1Progress
  addPeer(address: string): void
  /** Leaves the swarm. Idempotent; resolves when the last storage call has returned and every socket is closed. */
  leave(): Promise<void>
}

/** How long the thread may take to announce that it stops. */
const LEAVE_GRACE_MS = 5_000
const IDLE: V1Progress = { peers: 0, downBytesPerSecond: 0, upBytesPerSecond: 0, uploadedBytes: 0, unverifiedBytes: 0 }

/** What a torrent uses of its swarm. */
export interface TorrentOwner {
  post(message: ToThread): void
  readonly clock: Clock
  readonly parse: (info: Uint8Array, infohash: string) => Promise<V1Layout>
  /** Whether there is a thread to announce the stop. */
  readonly running: () => boolean
  readonly left: () => void
}

/**
 * One torrent on the owner's side of the thread: holds what must survive a crash of the thread (the layout, the
 * storage, the options) and serves its reads and writes.
 *
 * Invariant: no read or write starts after `leave` was called; it resolves when the running ones are finished.
 */
export class JoinedTorrent implements V1Torrent {
  readonly infohash: string
  readonly ready: Promise<V1Layout>
  readonly done: Promise<void>
  readonly #id: number
  readonly #options: V1JoinOptions
  readonly #owner: TorrentOwner
  readonly #ready = Promise.withResolvers<V1Layout>()
  readonly #done = Promise.withResolvers<void>()
  readonly #gone = Promise.withResolvers<void>()
  readonly #pending = new Set<Promise<void>>()
  readonly #peers: string[]
  readonly #timer: Timer
  #info: Uint8Array | undefined
  #opening: Promise<Pieces> | undefined
  /** Of this thread. */
  #progress = IDLE
  /** Bytes uploaded by earlier threads. */
  #uploadedBefore = 0
  #left: Promise<void> | undefined

  constructor(id: number, options: V1JoinOptions, owner: TorrentOwner) {
    this.#id = id
    this.#options = options
    this.#owner = owner
    this.infohash = options.infohash
    this.#info = options.info
    this.#peers = options.peers.filter((peer) => tryParseAddress(peer) !== undefined)
    this.ready = this.#ready.promise
    this.done = this.#done.promise
    // callers who do not await these learn of a failure in other ways.
    for (const promise of [this.ready, this.done]) promise.catch(() => {})
    this.#timer = owner.clock.after(options.metadataTimeoutMs, () =>
      this.#fail('metadata-timeout', "no peer gave the torrent's metadata in time: the swarm is unreachable")
    )
    options.signal?.addEventListener('abort', this.#abort, { once: true })
    if (options.signal?.aborted) queueMicrotask(this.#abort)
    this.joinThread()
  }

  /** Joins in a new thread: the first one, or the next one after a crash. */
  joinThread(): void {
    if (this.#left !== undefined) return
    const { infohash, policy, complete = false, quiet = false } = this.#options
    const trackers = quiet ? [] : this.#options.trackers
    this.#endProgress()
    const join = { infohash, info: this.#info, trackers, policy, peers: this.#peers, quiet, complete }
    this.#owner.post({ kind: 'join', id: this.#id, ...join })
  }

  /** Keeps the count of what this thread has uploaded. */
  #endProgress(): void {
    this.#uploadedBefore += this.#progress.uploadedBytes
    this.#progress = IDLE
  }

  /** The thread crashed. */
  lostThread(): void {
    this.#gone.resolve()
  }

  received(message: Extract<FromThread, { readonly id: number }>): void {
    switch (message.kind) {
      case 'metadata':
        return void this.#metadata(message.info)
      case 'get':
        return this.#track(() => this.#read(message))
      case 'put':
        return this.#track(() => this.#write(message))
      case 'progress':
        this.#progress = message.progress
        return
      case 'warning':
        return this.#options.onWarning?.(message.message)
      case 'done':
        return this.#done.resolve()
      case 'failed':
        return this.#fail('client', `the torrent failed: ${message.message}`)
      case 'left':
        return this.#gone.resolve()
    }
  }

  progress(): V1Progress {
    return { ...this.#progress, uploadedBytes: this.#uploadedBefore + this.#progress.uploadedBytes }
  }

  addPeer(address: string): void {
    if (this.#left !== undefined || tryParseAddress(address) === undefined) return
    this.#peers.push(address)
    this.#owner.post({ kind: 'peer', id: this.#id, address })
  }

  leave(): Promise<void> {
    this.#left ??= this.#leave()
    return this.#left
  }

  async #leave(): Promise<void> {
    this.#timer.cancel()
    this.#options.signal?.removeEventListener('abort', this.#abort)
    const left = new SwarmV1Error('E_SWARM_V1', 'aborted', 'the torrent was removed before it was complete')
    for (const { reject } of [this.#ready, this.#done]) reject(left)
    this.#endProgress()
    if (this.#owner.running()) {
      this.#owner.post({ kind: 'leave', id: this.#id })
      const timer = this.#owner.clock.after(LEAVE_GRACE_MS, () => this.#gone.resolve())
      await this.#gone.promise
      timer.cancel()
    }
    await Promise.allSettled([...this.#pending])
    this.#owner.left()
  }

  readonly #abort = (): void => this.#fail('aborted', 'aborted', this.#options.signal?.reason)

  #fail(reason: 'aborted' | 'client' | 'metadata-timeout', message: string, cause?: unknown): void {
    this.#reject(new SwarmV1Error('E_SWARM_V1', reason, message, { cause }))
  }

  #reject(error: unknown): void {
    for (const { reject } of [this.#ready, this.#done]) reject(error)
    void this.leave()
  }

  /** Every new thread sends it; only the first time it is validated and the storage opened. */
  async #metadata(info: Uint8Array): Promise<void> {
    if (this.#left !== undefined) return
    this.#timer.cancel()
    try {
      this.#opening ??= this.#owner.parse(info, this.infohash).then((layout) => this.#open(layout))
      const { upload } = await this.#opening
      if (this.#left === undefined) this.#owner.post({ kind: 'opened', id: this.#id, upload })
    } catch (error) {
      this.#reject(error)
    }
  }

  async #open(layout: V1Layout): Promise<Pieces> {
    this.#info = layout.info
    const storage = await this.#options.open(layout)
    this.#ready.resolve(layout)
    return new Pieces(layout, storage)
  }

  /** For peers, unreadable bytes count as missing. */
  async #read({ call, piece, offset, length }: Extract<FromThread, { kind: 'get' }>): Promise<void> {
    const bytes = await this.#opening?.then((pieces) => pieces.read(piece, offset, length)).catch(() => undefined)
    this.#owner.post({ kind: 'got', call, bytes })
  }

  async #write({ call, piece, bytes }: Extract<FromThread, { kind: 'put' }>): Promise<void> {
    try {
      await this.#opening?.then((pieces) => pieces.write(piece, bytes))
      this.#owner.post({ kind: 'stored', call })
    } catch (error) {
      this.#fail('client', 'the torrent failed: its storage refused a piece', error)
    }
  }

  #track(begin: () => Promise<void>): void {
    if (this.#left !== undefined) return
    const settled = begin().finally(() => this.#pending.delete(settled))
    this.#pending.add(settled)
  }
}
