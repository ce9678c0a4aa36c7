import { ByteRangeSet, gapsOf } from '@svc/internal-byte-ranges'
import type { Timer } from '@svc/internal-clock'
import { readUpTo, replaceFile, writeFully } from '@svc/internal-files'
import { checkRange } from './blob-reader.ts'
import { commitBlob } from './commit-blob.ts'
import { CasError, closedError, ioError, shortPart } from './errors.ts'
import { formatJournal, type Journal } from './journal.ts'
import { PrefixHash } from './prefix-hash.ts'
import type {
  ByteRanges,
  HashResult,
  IngestOptions,
  IngestResult,
  PartialBlob,
  PartialKey,
  PartialOptions
} from './store.ts'
import { checkExpected, type StoreContext } from './store-context.ts'
import type { Unsynced } from './unsynced.ts'

/**
 * Bytes until the next checkpoint: as many as the journal has, within these bounds. So a kill in the first seconds of a fast
 * download costs about half of it, not all; files below the lower bound are synced when they are committed.
 */
const MIN_CHECKPOINT_BYTES = 8 << 20
const MAX_CHECKPOINT_BYTES = 64 << 20

/** A released partial, which the next holder of its key opens again. */
export interface PartialRemains {
  readonly id: string
  readonly journal: Journal
}

export interface PartialSetup {
  readonly context: StoreContext
  readonly id: string
  readonly fd: number
  readonly key: PartialKey
  readonly ranges: ByteRanges
  readonly options: PartialOptions
  /** Longest time until written bytes are in the journal. */
  readonly checkpointMs: number
  readonly unsynced: Unsynced
  /** Called once, at the end: releases the key and records what can be resumed. */
  readonly onEnd: (remains: PartialRemains | undefined) => void
}

/**
 * A part file under construction.
 *
 * Invariants: `#ranges` holds only bytes whose write has completed; the journal on disk lists only bytes that were
 * synced before it; hashing never reads beyond `#ranges.prefixEnd`, and removing bytes from the hashed prefix restarts
 * it. A failed sync is final: every later call throws it, and `release` deletes the file.
 */
export class DiskPartialBlob implements PartialBlob {
  readonly sizeBytes: number
  readonly #setup: PartialSetup
  readonly #ranges: ByteRangeSet
  readonly #prefix: PrefixHash
  readonly #busy = new Set<Promise<unknown>>()
  #verified: HashResult | undefined
  #sinceCheckpoint = 0
  /** This partial's share of what `Unsynced` counts for the store. */
  #unsyncedBytes = 0
  /** Bytes in the ranges of the journal on disk. */
  #journaledBytes: number
  #checkpoint: Promise<void> | undefined
  #timer: Timer | undefined
  #failure: CasError | undefined
  #ended: Promise<void> | undefined

  constructor(setup: PartialSetup) {
    const { context, fd, key, options } = setup
    this.#setup = setup
    this.sizeBytes = key.sizeBytes
    this.#ranges = new ByteRangeSet(setup.ranges)
    this.#journaledBytes = this.#ranges.totalBytes
    const { attachments = [] } = options
    this.#prefix = new PrefixHash(context.threads, fd, { attachments, sizeBytes: key.sizeBytes })
    this.#prefix.advance(this.#ranges.prefixEnd)
  }

  get key(): string {
    return this.#setup.key.key
  }

  get fd(): number {
    this.#throwIfEnded()
    return this.#setup.fd
  }

  get writeGate(): Int32Array {
    return this.#setup.unsynced.gate
  }

  ranges(): ByteRanges {
    return this.#ranges.toRanges()
  }

  async write(offset: number, bytes: Uint8Array): Promise<void> {
    this.#throwIfEnded()
    const end = offset + bytes.length
    checkRange(offset, end, this.sizeBytes)
    if (bytes.length === 0) return
    // during the write these bytes are neither the old nor the new ones.
    if (this.#ranges.overlaps(offset, end)) this.unmark(offset, end)
    const { port, layout } = this.#setup.context
    await this.#hold(async () => {
      try {
        await writeFully(port, this.#setup.fd, bytes, offset)
      } catch (error) {
        throw ioError(error, 'write part', layout.part(this.#setup.id))
      }
      this.#mark(offset, end)
    })
    await this.#setup.unsynced.room()
  }

  markWritten(start: number, end: number): Promise<void> | undefined {
    this.#throwIfEnded()
    checkRange(start, end, this.sizeBytes)
    // bytes that are declared again may be others than those that were hashed.
    if (this.#ranges.overlaps(start, end)) this.unmark(start, end)
    this.#mark(start, end)
    return this.#setup.unsynced.room()
  }

  unmark(start: number, end: number): void {
    this.#throwIfEnded()
    checkRange(start, end, this.sizeBytes)
    if (start === end) return
    this.#ranges.remove(start, end)
    this.#verified = undefined
    if (start < this.#prefix.target) this.#prefix.restart()
    this.#prefix.advance(this.#ranges.prefixEnd)
  }

  async read(target: Uint8Array, offset: number): Promise<number> {
    this.#throwIfEnded()
    const length = Math.min(target.length, Math.max(0, this.sizeBytes - offset))
    checkRange(offset, offset + length, this.sizeBytes)
    if (!this.#ranges.contains(offset, offset + length))
      throw new CasError('E_INCOMPLETE', `[${offset}, ${offset + length}) is not written yet`)
    return this.#hold(async () => {
      const { context, fd } = this.#setup
      let found: Uint8Array
      try {
        found = await readUpTo(context.port, fd, target.subarray(0, length), offset)
      } catch (error) {
        throw ioError(error, 'read part')
      }
      if (found.length < length) throw shortPart()
      return length
    })
  }

  async checkpoint(): Promise<void> {
    this.#throwIfEnded()
    await this.#hold(() => this.#checkpointNow())
  }

  async verify(): Promise<HashResult> {
    this.#throwIfEnded()
    return this.#hold(() => this.#setup.context.run(this.#setup.options.signal, (signal) => this.#verify(signal)))
  }

  async commit(options: Pick<IngestOptions, 'accept'> = {}): Promise<IngestResult> {
    this.#throwIfEnded()
    const { context, id, fd } = this.#setup
    return context.run(this.#setup.options.signal, async (signal) => {
      const result = await this.#hold(() => this.#verify(signal))
      this.#throwIfEnded()
      let committed: Promise<IngestResult> | undefined
      // `commitBlob` takes over the descriptor and the part file; the partial ends whether it succeeds or not.
      await this.#end(async () => {
        committed = commitBlob(context, result, { part: context.layout.part(id), partFd: fd }, options, signal)
        await Promise.allSettled([committed])
        await context.port.unlink(context.layout.journal(id)).catch(() => undefined)
        return undefined
      })
      return committed!
    })
  }

  async release(): Promise<void> {
    const { context, id, fd } = this.#setup
    let failure: unknown
    await this.#end(async () => {
      await this.#checkpointNow().catch((error: unknown) => {
        failure = error
      })
      if (this.#failure !== undefined) return this.#delete()
      // the bytes were synced even if the journal could not be written, so this process can resume them.
      await context.port.close(fd).catch((error: unknown) => {
        failure ??= ioError(error, 'close part')
      })
      return { id, journal: this.#journalOf(this.#ranges) }
    })
    if (failure !== undefined) throw failure
  }

  async discard(): Promise<void> {
    await this.#end(() => this.#delete())
  }

  async #verify(signal: AbortSignal): Promise<HashResult> {
    if (this.#verified !== undefined) return this.#verified
    if (this.#failure !== undefined) throw this.#failure
    if (!this.#ranges.contains(0, this.sizeBytes)) {
      const missing = this.sizeBytes - this.#ranges.totalBytes
      throw new CasError('E_INCOMPLETE', `${missing} of ${this.sizeBytes} bytes are not written yet`, {
        sizeBytes: this.sizeBytes
      })
    }
    const { digest, attachments } = await this.#prefix.finish(this.sizeBytes, signal)
    const whole: HashResult = { digest: digest!, sizeBytes: this.sizeBytes, attachments }
    try {
      checkExpected(whole, { digest: this.#setup.key.digest })
    } catch (error) {
      this.#ranges.clear()
      this.#prefix.restart()
      // write the journal at once: after a crash those bytes must not be resumed.
      await this.#checkpointNow().catch(() => undefined)
      throw error
    }
    this.#verified = whole
    return whole
  }

  #mark(start: number, end: number): void {
    if (start >= end) return
    this.#ranges.add(start, end)
    this.#prefix.advance(this.#ranges.prefixEnd)
    this.#sinceCheckpoint += end - start
    if (this.#ended !== undefined) return
    this.#unsyncedBytes += end - start
    this.#setup.unsynced.add(end - start)
    if (this.#sinceCheckpoint >= this.#checkpointBytes || this.#setup.unsynced.isFull) this.checkpointWritten()
    else this.#timer ??= this.#setup.context.clock.after(this.#setup.checkpointMs, () => this.#checkpointSoon())
  }

  get #checkpointBytes(): number {
    return Math.min(MAX_CHECKPOINT_BYTES, Math.max(MIN_CHECKPOINT_BYTES, this.#journaledBytes))
  }

  /** Begins a checkpoint, unless nothing was written since the last one or another is under way. */
  checkpointWritten(): void {
    if (this.#sinceCheckpoint > 0 && this.#checkpoint === undefined && this.#ended === undefined) this.#checkpointSoon()
  }

  #synced(bytes: number): void {
    this.#unsyncedBytes -= bytes
    this.#setup.unsynced.remove(bytes)
  }

  /**
   * A failed sync is stored and thrown by the next call. A journal that could not be written is harmless: the old one
   * lists less.
   */
  #checkpointSoon(): void {
    void this.#hold(() => this.#checkpointNow()).catch(() => undefined)
  }

  /** Checkpoints run one at a time; a caller that comes during one waits for the next. */
  async #checkpointNow(): Promise<void> {
    while (this.#checkpoint !== undefined) await this.#checkpoint.catch(() => undefined)
    const running = this.#writeCheckpoint()
    this.#checkpoint = running
    try {
      await running
    } finally {
      this.#checkpoint = undefined
      // the writers, who usually begin the next one, are waiting for it.
      if (this.#setup.unsynced.isFull) this.checkpointWritten()
    }
  }

  async #writeCheckpoint(): Promise<void> {
    const { context, id, fd } = this.#setup
    if (this.#failure !== undefined) throw this.#failure
    let claimed = new ByteRangeSet()
    let syncingBytes = 0
    try {
      await context.datasync(fd, context.layout.part(id), () => {
        // only now: the syncs of other files may have taken long.
        this.#timer?.cancel()
        this.#timer = undefined
        this.#sinceCheckpoint = 0
        syncingBytes = this.#unsyncedBytes
        claimed = new ByteRangeSet(this.#ranges.toRanges())
      })
    } catch (error) {
      this.#failure = error as CasError
      this.#synced(this.#unsyncedBytes)
      throw error
    }
    // leave out ranges that were unmarked during the sync.
    for (const [start, end] of gapsOf(this.#ranges.toRanges(), 0, this.sizeBytes)) claimed.remove(start, end)
    try {
      context.guard.requireRoot()
      await replaceFile(context.port, context.layout.journal(id), formatJournal(this.#journalOf(claimed)))
      this.#journaledBytes = claimed.totalBytes
    } catch (error) {
      throw ioError(error, 'replace journal', context.layout.journal(id))
    } finally {
      // also on failure: writers must not wait for a journal that the disk refuses.
      this.#synced(syncingBytes)
    }
  }

  #journalOf(ranges: ByteRangeSet): Journal {
    const { key, sizeBytes, digest } = this.#setup.key
    return { key, sizeBytes, digest, ranges: ranges.toRanges() }
  }

  /** Registers work that has to finish before the partial ends. */
  async #hold<T>(work: () => Promise<T>): Promise<T> {
    const running = work()
    this.#busy.add(running)
    try {
      return await running
    } finally {
      this.#busy.delete(running)
    }
  }

  #end(last: () => Promise<PartialRemains | undefined>): Promise<void> {
    this.#ended ??= (async () => {
      let remains: PartialRemains | undefined
      this.#timer?.cancel()
      try {
        while (this.#busy.size > 0) await Promise.allSettled(this.#busy)
        await this.#prefix.stop()
        remains = await last()
      } finally {
        this.#synced(this.#unsyncedBytes)
        this.#setup.onEnd(remains)
      }
    })()
    return this.#ended
  }

  async #delete(): Promise<undefined> {
    const { context, id, fd } = this.#setup
    await context.discardPart(fd, context.layout.part(id))
    await context.port.unlink(context.layout.journal(id)).catch(() => undefined)
  }

  #throwIfEnded(): void {
    if (this.#ended !== undefined) throw closedError('the partial blob')
    if (this.#failure !== undefined) throw this.#failure
  }
}
