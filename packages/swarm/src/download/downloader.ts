// The life of a piece in progress, in one file because each step works on the same buffers:
//
//   1. A source (peer or webseed) asks for work: `take` returns free blocks of a piece in progress, or starts the piece
//      that the picker chooses, which needs a slot of receive memory. Without a slot nothing is requested.
//   2. Blocks arrive in the slot (`BlockReceiver`); `arrived` notes who sent them.
//   3. With the last block the piece is sealed and goes to a verifying thread, which hashes it and, when it is right,
//      writes it.
//   4. Right: `piece-verified`, and the slot goes back, as soon as the storage needs its bytes no more. Wrong: `piece-wrong`,
//      whose handler asks peers for the proven leaves; with them `judge` keeps the good blocks and names who sent bad ones.
//
// Verified pieces belong to `FileProgress`, piece hashes to `PieceHashes`, requests on the wire to `PendingRequests`.

import type { Clock } from '@svc/internal-clock'
import type { TorrentLayout } from '@svc/metainfo'
import { equalBytes, HASH_BYTES } from '@svc/metainfo'
import type { Bitfield } from '../bitfield.ts'
import { SwarmError } from '../errors.ts'
import type { Emit, EventOf } from '../events.ts'
import { reportDefect } from '../net/guarded.ts'
import { type BlockRun, NOBODY, PieceBuffer } from '../piece/piece-buffer.ts'
import type { SlotPool } from '../piece/slot-pool.ts'
import type { Sparing } from './far-sources.ts'
import type { FileProgress } from './file-progress.ts'
import type { PiecePicker, PieceRange } from './picker.ts'
import type { PieceHashes } from './piece-hashes.ts'
import type { Verifier } from './verifier.ts'

/** A source that blocks can be requested from: a peer or a webseed. */
export interface BlockSource {
  /** Positive, unique in the engine. */
  readonly id: number
  /** Undefined: the source has every piece. */
  readonly bits: Bitfield | undefined
  /** Given: one piece at a time, and none that another source has started. */
  readonly sparing?: Sparing
}

export type DownloaderEvents = 'answered' | 'piece-verified' | 'piece-wrong' | 'bad-data' | 'work' | 'failed'

/** No piece is started while this much waits to be verified: a fast sender would fill all memory, and be no faster. */
const BACKLOG_BYTES = 20 * 1024 * 1024
const BACKLOG_PIECES = 5

export interface BlockOrder {
  readonly buffer: PieceBuffer
  readonly run: BlockRun
}

/** When memory is short, blocks of a piece that received nothing for this long are requested from others as well. */
const STANDSTILL_MS = 3_000
/** A source that had a suspicious piece alone and did not finish it gets it again after this long. */
const PASSED_MS = 10_000
/** How long a source may have a suspicious piece alone; twice as long after each that did not finish it. */
const PAROLE_MS = 30_000
/** Up to eight minutes: a peer that comes back under ever new names gains no more. */
const MAX_PAROLE_DOUBLINGS = 4

export interface DownloaderDeps {
  readonly env: { readonly clock: Clock; readonly pool: SlotPool; readonly verifier: Verifier }
  readonly layout: TorrentLayout
  readonly picker: PiecePicker
  readonly hashes: PieceHashes
  readonly progress: Pick<FileProgress, 'writer'>
  readonly emit: Emit<DownloaderEvents>
}

/**
 * The pieces in progress: assigns blocks to sources, receives them, and has complete pieces verified.
 *
 * Invariants: every buffer in `#active` owns one slot until the piece is done or abandoned; a piece is closed in the
 * picker exactly while it is active or verified; nothing touches a slot while its buffer is sealed.
 */
export class Downloader {
  readonly #deps: DownloaderDeps
  readonly #active = new Map<number, PieceBuffer>()
  /** Active buffers with free blocks that others may take. A late answer may have taken the last of them. */
  readonly #loose = new Set<PieceBuffer>()
  /** The buffer that each source is working on. */
  readonly #current = new Map<number, PieceBuffer>()
  /** There was no slot for the last piece that should have started. */
  #starved = false
  /** Pieces that are being hashed or written: these use the storage's descriptors. */
  readonly #verifying = new Set<Promise<void>>()
  #verifyingBytes = 0
  #closed = false
  readonly #notify = (): void => this.#deps.emit({ kind: 'work' })

  constructor(deps: DownloaderDeps) {
    this.#deps = deps
  }

  /** Of blocks that have arrived, in pieces that are not verified yet. */
  get unverifiedBytes(): number {
    let bytes = 0
    for (const buffer of this.#active.values()) bytes += buffer.receivedBytes
    return bytes
  }

  /** At most `maxBlocks` consecutive blocks to request from a source; undefined: nothing for it now. */
  take(source: BlockSource, maxBlocks: number): BlockOrder | undefined {
    if (this.#closed) return undefined
    const current = this.#current.get(source.id)
    if (current !== undefined) {
      const order = this.#from(current, source, maxBlocks)
      if (order !== undefined) return order
      this.#current.delete(source.id)
    }
    for (const buffer of this.#loose) {
      if (!has(source, buffer.piece) || (source.sparing && !this.#deps.picker.isUnshared(buffer.piece))) continue
      const order = this.#from(buffer, source, maxBlocks)
      if (order !== undefined) return order
    }
    const fresh = this.#start(source)
    if (fresh !== undefined) return this.#from(fresh, source, maxBlocks)
    if (source.sparing) return undefined
    return this.#steal(source, maxBlocks) ?? this.#twice(source, maxBlocks)
  }

  #from(buffer: PieceBuffer, source: BlockSource, maxBlocks: number): BlockOrder | undefined {
    if (buffer.sealed || (buffer.exclusive !== NOBODY && buffer.exclusive !== source.id)) return undefined
    if (buffer.parole && hasPassed(buffer, source.id, this.#deps.env.clock.monotonic())) return undefined
    const run = buffer.take(maxBlocks, source.id)
    if (buffer.freeBlocks === 0) this.#loose.delete(buffer)
    if (run === undefined) return undefined
    if (buffer.freeBlocks > 0) this.#current.set(source.id, buffer)
    if (buffer.parole && buffer.exclusive !== source.id) {
      buffer.exclusive = source.id
      buffer.paroleSince = this.#deps.env.clock.monotonic()
    }
    return { buffer, run }
  }

  #start(source: BlockSource): PieceBuffer | undefined {
    if (source.sparing && this.#hasOwn(source)) return undefined
    const piece = this.#deps.picker.pick(source.bits, source.sparing)
    if (piece === undefined) return undefined
    const buffer = this.#open(piece)
    if (buffer !== undefined && buffer.blockCount > 1) buffer.exclusive = source.id
    return buffer
  }

  #hasOwn(source: BlockSource): boolean {
    for (const buffer of this.#active.values()) if (!buffer.sealed && buffer.exclusive === source.id) return true
    return false
  }

  #open(piece: number): PieceBuffer | undefined {
    if (this.#verifyingBytes >= Math.max(BACKLOG_BYTES, BACKLOG_PIECES * this.#deps.layout.pieceLengthBytes)) {
      this.#deps.env.pool.wait(this.#notify)
      return undefined
    }
    const size = this.#deps.layout.span(piece).lengthBytes
    let slot = this.#deps.env.pool.acquire(size)
    if (slot === undefined && this.#evict()) slot = this.#deps.env.pool.acquire(size)
    this.#starved = slot === undefined
    if (slot === undefined) {
      this.#deps.env.pool.wait(this.#notify)
      return undefined
    }
    const buffer = new PieceBuffer(piece, slot)
    buffer.begunAt = this.#deps.env.clock.monotonic()
    buffer.touchedAt = buffer.begunAt
    this.#active.set(piece, buffer)
    this.#deps.picker.close(piece)
    return buffer
  }

  /** Frees memory: abandons the emptiest piece among those whose sources are all gone. */
  #evict(): boolean {
    let victim: PieceBuffer | undefined
    for (const buffer of this.#loose) {
      if (buffer.sealed || buffer.requestedBlocks > 0 || this.#deps.picker.availability(buffer.piece) > 0) continue
      if (victim === undefined || buffer.receivedBlocks < victim.receivedBlocks) victim = buffer
    }
    if (victim === undefined) return false
    this.#abandon(victim)
    return true
  }

  /** Returns the slot; the piece can be started again. */
  #abandon(buffer: PieceBuffer): void {
    this.#dispose(buffer)
    this.#deps.picker.reopen(buffer.piece)
  }

  /** @param kept settles when the storage has room for more */
  #dispose(buffer: PieceBuffer, kept?: Promise<void>): void {
    buffer.retire()
    this.#active.delete(buffer.piece)
    this.#loose.delete(buffer)
    for (const [source, current] of this.#current) if (current === buffer) this.#current.delete(source)
    const release = (): void => this.#deps.env.pool.release(buffer.slot)
    if (kept === undefined) return release()
    kept.then(release, release)
  }

  /** With no new piece to start: takes free blocks of a piece that was reserved for one source. */
  #steal(source: BlockSource, maxBlocks: number): BlockOrder | undefined {
    for (const buffer of this.#active.values()) {
      if (buffer.sealed || buffer.parole || buffer.freeBlocks === 0 || !has(source, buffer.piece)) continue
      buffer.exclusive = NOBODY
      this.#loose.add(buffer)
      return this.#from(buffer, source, maxBlocks)
    }
    return undefined
  }

  /**
   * End game: blocks that others were asked for and have not sent. Also used while there are pieces to start but no
   * memory for them; then only for stalled pieces, since slow sources would hold all slots otherwise.
   */
  #twice(source: BlockSource, maxBlocks: number): BlockOrder | undefined {
    const endGame = this.#deps.picker.openCount === 0
    if (!endGame && !this.#starved) return undefined
    const stillSince = this.#deps.env.clock.monotonic() - STANDSTILL_MS
    for (const buffer of this.#active.values()) {
      if (buffer.sealed || buffer.parole || buffer.requestedBlocks === 0 || !has(source, buffer.piece)) continue
      if (!endGame && buffer.touchedAt > stillSince) continue
      const run = buffer.takeAgain(maxBlocks, source.id)
      if (run !== undefined) return { buffer, run }
    }
    return undefined
  }

  /** A piece of these ranges that was started and that no source works on. */
  takeLoose(source: BlockSource, ranges: readonly PieceRange[]): BlockOrder | undefined {
    if (this.#closed || ranges.length === 0) return undefined
    for (const buffer of this.#loose) {
      const { piece } = buffer
      if (!ranges.some(({ firstPiece, endPiece }) => firstPiece <= piece && piece < endPiece)) continue
      const order = has(source, piece) ? this.#from(buffer, source, buffer.blockCount) : undefined
      if (order !== undefined) return order
    }
    return undefined
  }

  /** Consecutive pieces of one file, all of whose blocks are taken at once, for one range of a webseed. `from`: see `pickRun`. */
  takePieces(
    source: BlockSource,
    { firstPiece, endPiece, from }: { readonly firstPiece: number; readonly endPiece: number; readonly from?: number },
    maxBytes: number
  ): readonly PieceBuffer[] {
    const max = Math.max(1, Math.floor(maxBytes / this.#deps.layout.pieceLengthBytes))
    const { sparing } = source
    const found = this.#closed ? undefined : this.#deps.picker.pickRun(firstPiece, endPiece, max, { from, sparing })
    if (found === undefined) return []
    const buffers: PieceBuffer[] = []
    for (let piece = found.first; piece < found.first + found.count; piece += 1) {
      const buffer = this.#open(piece)
      if (buffer === undefined) break
      buffer.exclusive = source.id
      buffer.take(buffer.blockCount, source.id)
      buffers.push(buffer)
    }
    return buffers
  }

  /** A request was refused, timed out or was lost with its source. */
  release(buffer: PieceBuffer, run: BlockRun, source: number): void {
    if (buffer.sealed) return
    buffer.release(run, source)
    if (buffer.exclusive === source) this.#pass(buffer)
    if (buffer.freeBlocks > 0 && (buffer.exclusive === NOBODY || buffer.parole)) this.#loose.add(buffer)
    // it sent the last missing block, and left in the middle of one that another had sent already.
    if (buffer.complete) this.#seal(buffer)
  }

  /** The source is slow, or gone and its requests released: others may take what was reserved for it. */
  share(source: number): void {
    this.#current.delete(source)
    for (const buffer of this.#active.values()) {
      if (buffer.exclusive !== source) continue
      this.#pass(buffer)
      if (!buffer.sealed && buffer.freeBlocks > 0) this.#loose.add(buffer)
    }
  }

  /** The source that has the piece alone does not finish it. On parole the next one begins anew: only a single sender is proof. */
  #pass(buffer: PieceBuffer): void {
    if (buffer.parole && !buffer.sealed) {
      buffer.passedAt.set(buffer.exclusive, this.#deps.env.clock.monotonic())
      for (let block = 0; block < buffer.blockCount; block += 1) buffer.forget(block)
    }
    buffer.exclusive = NOBODY
  }

  /** Sources that have kept a suspicious piece from all others for too long. */
  overdue(nowMs: number): readonly number[] {
    return [...this.#active.values()]
      .filter(({ parole, sealed, exclusive }) => parole && !sealed && exclusive !== NOBODY)
      .filter(
        ({ paroleSince, passedAt }) =>
          nowMs - paroleSince > PAROLE_MS * 2 ** Math.min(passedAt.size, MAX_PAROLE_DOUBLINGS)
      )
      .map(({ exclusive }) => exclusive)
  }

  arrived(buffer: PieceBuffer, run: BlockRun, source: number, nowMs: number): void {
    if (buffer.sealed) return
    if (buffer.isBarred(source)) return this.release(buffer, run, source)
    buffer.touchedAt = nowMs
    if (this.#deps.picker.openCount === 0 || this.#starved)
      this.#deps.emit({ kind: 'answered', buffer, run, sender: source })
    if (buffer.complete) this.#seal(buffer)
  }

  #seal(buffer: PieceBuffer): void {
    buffer.sealed = true
    this.#loose.delete(buffer)
    this.#verifyingBytes += buffer.sizeBytes
    const verifying = this.#verify(buffer)
      .catch(reportDefect)
      .finally(() => this.#verifying.delete(verifying))
    this.#verifying.add(verifying)
  }

  async #verify(buffer: PieceBuffer): Promise<void> {
    let event: EventOf<'piece-verified' | 'piece-wrong' | 'failed'>
    let kept: Promise<void> | undefined
    try {
      ;({ event, kept } = await this.#hashAndWrite(buffer))
    } catch (error) {
      if (!this.#closed) this.#deps.picker.reopen(buffer.piece)
      event = { kind: 'failed', error: writeError(buffer.piece, error) }
    } finally {
      this.#verifyingBytes -= buffer.sizeBytes
    }
    if (this.#closed || event.kind !== 'piece-wrong') this.#dispose(buffer, kept)
    if (!this.#closed) this.#deps.emit(event)
  }

  async #hashAndWrite(
    buffer: PieceBuffer
  ): Promise<{ readonly event: EventOf<'piece-verified' | 'piece-wrong'>; readonly kept?: Promise<void> | undefined }> {
    const { file, offset, lengthBytes } = this.#deps.layout.span(buffer.piece)
    const expected = this.#deps.hashes.expected(buffer.piece)!
    const writer = await this.#deps.progress.writer(file.index)
    const { outcome, leaves, error } = await this.#deps.env.verifier.submit({
      buffer: buffer.slot.bytes.buffer as SharedArrayBuffer,
      sizeBytes: buffer.sizeBytes,
      expected,
      write: writer.fd === undefined ? undefined : { fd: writer.fd, position: offset }
    })
    if (outcome === 'failed') throw Object.assign(new Error(error!.message), error)
    if (outcome === 'wrong') return { event: { kind: 'piece-wrong', buffer, leaves } }
    if (writer.fd === undefined) await writer.write(offset, buffer.slot.bytes)
    this.#nameLiars(buffer, leaves)
    const kept = this.#closed ? undefined : writer.markWritten(offset, offset + lengthBytes, leaves)
    return { event: { kind: 'piece-verified', piece: buffer.piece }, kept: kept ?? undefined }
  }

  /**
   * Handles a wrong piece. `leaves` are the hashes of its blocks, `proven` the right ones, if a peer had them: then good
   * blocks are kept, and the senders of bad ones named. Otherwise the piece is next requested from a single sender: wrong
   * again, that one is the culprit; right, whoever sent other bytes before.
   */
  judge(buffer: PieceBuffer, leaves: Uint8Array, proven: Uint8Array | undefined): void {
    if (this.#closed) return this.#dispose(buffer)
    const senders = buffer.senders()
    const bad = new Set<number>(senders.size === 1 ? senders : [])
    if (proven !== undefined) this.#nameLiars(buffer, proven)
    else if (senders.size > 1) buffer.remember(leaves)
    for (let block = 0; block < buffer.blockCount; block += 1) {
      if (proven !== undefined) {
        if (sameLeaf(proven, leaves, block)) continue
        bad.add(buffer.senderOf(block))
      }
      buffer.forget(block)
    }
    buffer.parole = proven === undefined && senders.size > 1
    buffer.exclusive = NOBODY
    buffer.sealed = false
    this.#loose.add(buffer)
    for (const sender of bad) this.#name(sender, buffer.piece)
    this.#deps.emit({ kind: 'work' })
  }

  #name(sender: number, piece: number): void {
    this.#deps.emit({ kind: 'bad-data', sender, reason: `wrong bytes in piece ${piece}`, piece })
  }

  /** The right hashes of the blocks show who sent wrong ones in earlier attempts. */
  #nameLiars(buffer: PieceBuffer, right: Uint8Array): void {
    const liars = new Set<number>()
    for (const { leaves, senders } of buffer.wrong.splice(0)) {
      for (const [block, sender] of senders.entries()) if (!sameLeaf(leaves, right, block)) liars.add(sender)
    }
    if (!this.#closed) for (const liar of liars) this.#name(liar, buffer.piece)
  }

  /** Returns all slots; resolves when no thread is writing. */
  async close(): Promise<void> {
    this.#closed = true
    this.#deps.env.pool.leave(this.#notify)
    for (const buffer of [...this.#active.values()]) if (!buffer.sealed) this.#dispose(buffer)
    await Promise.all(this.#verifying)
  }
}

const writeError = (piece: number, cause: unknown): SwarmError =>
  cause instanceof SwarmError
    ? cause
    : new SwarmError('E_STORAGE', 'write', `writing piece ${piece} failed`, { cause, details: { piece } })

function hasPassed(buffer: PieceBuffer, source: number, nowMs: number): boolean {
  const at = buffer.passedAt.get(source)
  return at !== undefined && nowMs - at < PASSED_MS
}

function sameLeaf(a: Uint8Array, b: Uint8Array, block: number): boolean {
  const [from, to] = [block * HASH_BYTES, (block + 1) * HASH_BYTES]
  return equalBytes(a.subarray(from, to), b.subarray(from, to))
}

const has = (source: BlockSource, piece: number): boolean => source.bits === undefined || source.bits.has(piece)
