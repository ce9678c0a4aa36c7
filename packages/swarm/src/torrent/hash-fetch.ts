import type { Clock } from '@svc/internal-clock'
import type { LayoutFile, TorrentLayout } from '@svc/metainfo'
import { BLOCK_BYTES, blockCount, equalBytes, foldLayer, HASH_BYTES, PieceLayerAssembler, toHex } from '@svc/metainfo'
import type { ExpectedHash } from '../download/piece-hashes.ts'
import type { Emit } from '../events.ts'
import type { Peer } from '../peer/peer.ts'
import type { HashRange } from '../wire/messages.ts'

const PER_PEER = 16
/** Per request. */
const MAX_LEAVES = 512
const TIMEOUT_MS = 10_000
/** A peer that has not sent the leaves of a wrong piece by then may be the liar: another one is asked as well. */
const LEAVES_SILENCE_MS = 2_000

interface LayerJob {
  readonly file: LayoutFile
  readonly rootHex: string
  readonly assembler: PieceLayerAssembler
  /** The peer that each outstanding range was requested from, by the range's index. */
  readonly asked: Map<number, number>
  /** Peers that rejected even requests without proofs. */
  readonly refusedBy: Set<number>
  proofs: boolean
}

interface LeafJob {
  readonly piece: number
  readonly expected: ExpectedHash
  readonly ranges: readonly HashRange[]
  /** By peer: its answers so far, one per range. */
  readonly answers: Map<number, (Uint8Array | undefined)[]>
  readonly triedPeers: Set<number>
  readonly resolve: (leaves: Uint8Array | undefined) => void
  readonly deadline: number
  askedAt: number
}

/**
 * Fetches hashes from peers (BEP 52): missing piece layers, and the leaves of a piece that failed. Everything is
 * verified before use. Requests ask for proofs; some clients reject those, and then the whole layer is requested
 * without proofs and verified at the end.
 *
 * Invariant: a range of a piece layer is outstanding at one peer at most.
 */
export class HashFetch {
  readonly #layout: TorrentLayout
  readonly #clock: Clock
  readonly #jobs = new Map<string, LayerJob>()
  readonly #leafJobs = new Set<LeafJob>()
  readonly #emit: Emit<'layer' | 'bad-data'>

  constructor(layout: TorrentLayout, clock: Clock, emit: Emit<'layer' | 'bad-data'>) {
    this.#layout = layout
    this.#clock = clock
    this.#emit = emit
  }

  #badHashes(peer: Peer): void {
    this.#emit({ kind: 'bad-data', sender: peer.id, reason: 'wrong hashes', piece: undefined })
  }

  get idle(): boolean {
    return this.#jobs.size === 0 && this.#leafJobs.size === 0
  }

  want(file: LayoutFile): void {
    const rootHex = toHex(file.piecesRoot!)
    if (this.#jobs.has(rootHex)) return
    const shape = { sizeBytes: file.lengthBytes, pieceLengthBytes: this.#layout.pieceLengthBytes }
    const assembler = new PieceLayerAssembler(file.piecesRoot!, shape)
    this.#jobs.set(rootHex, { file, rootHex, assembler, asked: new Map(), refusedBy: new Set(), proofs: true })
  }

  /** The layer came from another source. */
  unwant(rootHex: string): void {
    this.#jobs.delete(rootHex)
  }

  pump(peers: Iterable<Peer>): void {
    if (this.idle) return
    // a peer that connected with the v2 infohash supports v2 (BEP 52), whatever its reserved bit says.
    const able = [...peers].filter((peer) => !peer.closed)
    const now = this.#clock.monotonic()
    for (const job of this.#leafJobs)
      if (job.answers.size === 0 || now - job.askedAt > LEAVES_SILENCE_MS) this.#askLeaves(job, able, now)
    for (const job of this.#jobs.values()) {
      // older jobs come first, so once every peer is busy the rest can be skipped: there may be thousands of files.
      if (!able.some((peer) => peer.hashes.size < PER_PEER)) return
      for (const request of job.assembler.missing()) {
        if (job.asked.has(request.index)) continue
        const peer = leastBusy(
          able,
          (candidate) => !job.refusedBy.has(candidate.id) && candidate.hashes.size < PER_PEER
        )
        if (peer === undefined) break
        job.asked.set(request.index, peer.id)
        peer.requestHashes({ root: job.file.piecesRoot!, ...request }, now)
      }
    }
  }

  /** The answer to one of our requests, or (undefined) its rejection. */
  answer(peer: Peer, range: HashRange, hashes: Uint8Array | undefined): void {
    if (range.baseLayer === 0 && this.#leafAnswer(peer, range, hashes)) return
    const job = this.#jobs.get(toHex(range.root))
    if (job === undefined) return
    job.asked.delete(range.index)
    if (hashes === undefined) {
      if (range.proofLayers > 0) {
        if (job.proofs) job.assembler.dropProofs()
        job.proofs = false
      } else job.refusedBy.add(peer.id)
      return
    }
    if (job.assembler.accept(range, hashes) === 'refused') {
      job.refusedBy.add(peer.id)
      this.#badHashes(peer)
      return
    }
    const layer = job.assembler.layer()
    if (layer === undefined) return
    this.#jobs.delete(job.rootHex)
    this.#emit({ kind: 'layer', rootHex: job.rootHex, layer })
  }

  /** The proven leaves of a piece (without padding); undefined when no peer sends them within `timeoutMs`. */
  leaves(piece: number, expected: ExpectedHash, timeoutMs: number): Promise<Uint8Array | undefined> {
    if (expected.levels === 0) return Promise.resolve(undefined)
    const { file, offset, lengthBytes } = this.#layout.span(piece)
    const first = offset / BLOCK_BYTES
    // a power of two: what exceeds the leaves at the end of the file is padding.
    const length = Math.min(MAX_LEAVES, 2 ** expected.levels)
    const ranges: HashRange[] = []
    for (let at = 0; at < blockCount(lengthBytes); at += length)
      ranges.push({ root: file.piecesRoot!, baseLayer: 0, index: first + at, length, proofLayers: 0 })
    return new Promise((resolve) => {
      this.#leafJobs.add({
        piece,
        expected,
        ranges,
        answers: new Map(),
        triedPeers: new Set(),
        resolve,
        deadline: this.#clock.monotonic() + timeoutMs,
        askedAt: 0
      })
    })
  }

  #askLeaves(job: LeafJob, peers: readonly Peer[], nowMs: number): void {
    const peer = leastBusy(peers, (candidate) => !job.triedPeers.has(candidate.id) && candidate.pieces.has(job.piece))
    if (peer === undefined) return
    job.askedAt = nowMs
    job.triedPeers.add(peer.id)
    job.answers.set(peer.id, new Array(job.ranges.length).fill(undefined))
    for (const range of job.ranges) peer.requestHashes(range, nowMs)
  }

  #leafAnswer(peer: Peer, range: HashRange, hashes: Uint8Array | undefined): boolean {
    for (const job of this.#leafJobs) {
      const at = job.ranges.findIndex(
        (own) => own.index === range.index && own.length === range.length && equalBytes(own.root, range.root)
      )
      const answers = job.answers.get(peer.id)
      // another job may be about the same range, of a file with the same content.
      if (at < 0 || answers === undefined || answers[at] !== undefined) continue
      if (hashes === undefined) {
        job.answers.delete(peer.id)
        return true
      }
      answers[at] = new Uint8Array(hashes.subarray(0, range.length * HASH_BYTES))
      if (answers.includes(undefined)) return true
      const all = Buffer.concat(answers as Uint8Array[])
      if (!equalBytes(foldLayer(all, 0, job.expected.levels), job.expected.hash)) {
        job.answers.delete(peer.id)
        this.#badHashes(peer)
        return true
      }
      this.#leafJobs.delete(job)
      job.resolve(new Uint8Array(all))
      return true
    }
    return false
  }

  /** The peer disconnected: others are asked instead. */
  gone(peer: Peer): void {
    for (const job of this.#jobs.values()) {
      for (const [index, id] of job.asked) if (id === peer.id) job.asked.delete(index)
    }
    for (const job of this.#leafJobs) job.answers.delete(peer.id)
  }

  tick(peers: readonly Peer[], nowMs: number): void {
    for (const peer of peers) {
      for (const range of peer.hashes.expired(nowMs - TIMEOUT_MS)) {
        const job = this.#jobs.get(toHex(range.root))
        if (job?.asked.get(range.index) === peer.id) job.asked.delete(range.index)
        job?.refusedBy.add(peer.id)
      }
    }
    for (const job of this.#leafJobs) {
      if (job.deadline > nowMs) continue
      this.#leafJobs.delete(job)
      job.resolve(undefined)
    }
    // everybody refused. Ask again: they may have the hashes by now.
    for (const job of this.#jobs.values())
      if (job.asked.size === 0 && peers.every((peer) => job.refusedBy.has(peer.id))) job.refusedBy.clear()
    this.pump(peers)
    // nobody is left to ask, e.g. with webseeds only: the piece must not wait for the deadline.
    for (const job of this.#leafJobs) {
      if (job.answers.size > 0) continue
      this.#leafJobs.delete(job)
      job.resolve(undefined)
    }
  }

  close(): void {
    this.#jobs.clear()
    for (const job of this.#leafJobs) job.resolve(undefined)
    this.#leafJobs.clear()
  }
}

function leastBusy(peers: readonly Peer[], fits: (peer: Peer) => boolean): Peer | undefined {
  let best: Peer | undefined
  for (const peer of peers) if (fits(peer) && (best === undefined || peer.hashes.size < best.hashes.size)) best = peer
  return best
}
