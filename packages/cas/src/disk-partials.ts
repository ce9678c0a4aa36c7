import { constants } from 'node:fs'
import { totalBytes } from '@svc/internal-byte-ranges'
import { KeyedLock, type Release } from '@svc/internal-concurrency'
import { errnoOf } from '@svc/internal-errors'
import { readUpToSync, TEMPORARY_FILE } from '@svc/internal-files'
import { isWhole } from './blob-reader.ts'
import { requireFreeSpace } from './commit-blob.ts'
import { abortError, type CasError, ioError } from './errors.ts'
import { checkPartialKey, type Journal, MAX_JOURNAL_BYTES, tryParseJournal } from './journal.ts'
import { randomId } from './layout.ts'
import { NEW_PART } from './part-file.ts'
import { DiskPartialBlob, type PartialRemains } from './partial-blob.ts'
import type { ByteRanges, PartialKey, PartialOptions, PartialStatus } from './store.ts'
import type { StoreContext } from './store-context.ts'
import { Unsynced } from './unsynced.ts'

const PART = /^([0-9a-f]{32})\.part$/
const JOURNAL = /^([0-9a-f]{32})\.json$/
const OPEN_PART = constants.O_RDWR | constants.O_NOFOLLOW | constants.O_NONBLOCK

export interface SweepTimes {
  readonly maxAgeMs: number
  /** When the store was last in use, by the clock of that time. */
  readonly lastUsedMs: number
}

/** The partial blobs of one open store: which of them are on disk, and which keys are held. */
export class DiskPartials {
  readonly #context: StoreContext
  readonly #checkpointMs: number
  readonly #keys = new KeyedLock<string>(abortError)
  /** Invariant: none of these has a holder. */
  readonly #remains = new Map<string, PartialRemains>()
  readonly #open = new Set<DiskPartialBlob>()
  readonly #unsynced = new Unsynced(() => {
    for (const partial of this.#open) partial.checkpointWritten()
  })

  constructor(context: StoreContext, checkpointMs: number) {
    this.#context = context
    this.#checkpointMs = checkpointMs
  }

  /**
   * Reads the journals and deletes everything that cannot be resumed: part files without a valid journal, journals
   * without a part file, partials untouched for `maxAgeMs`, partials whose blob exists (after a kill between its commit
   * and the removal of its part, or because it came another way), temporary files. Other files stay. Called once, before
   * anything else.
   *
   * The age counts up to now or to the time of the last use, whichever is earlier: a clock that is wrong at one start
   * deletes nothing.
   */
  sweep({ maxAgeMs, lastUsedMs }: SweepTimes): void {
    const { port, layout, clock } = this.#context
    const untilMs = Math.min(clock.now(), lastUsedMs)
    try {
      const names = port.readdirSync(layout.incoming)
      const idsOf = (pattern: RegExp): string[] => names.flatMap((name) => pattern.exec(name)?.[1] ?? [])
      const parts = new Set(idsOf(PART))
      for (const name of names) if (TEMPORARY_FILE.test(name)) port.unlinkSync(`${layout.incoming}/${name}`)
      for (const id of idsOf(JOURNAL)) {
        const found = this.#readJournal(id)
        const journal = found?.journal
        const stale = found === undefined || untilMs - found.mtimeMs > maxAgeMs || !parts.has(id)
        const isOver = journal === undefined || stale || this.#isPresent(journal)
        if (isOver || this.#remains.has(journal.key)) {
          port.unlinkSync(layout.journal(id))
          continue
        }
        this.#remains.set(journal.key, { id, journal })
        parts.delete(id)
      }
      for (const id of parts) port.unlinkSync(layout.part(id))
    } catch (error) {
      throw ioError(error, 'sweep incoming', layout.incoming)
    }
  }

  #isPresent({ digest, sizeBytes }: Journal): boolean {
    const { port, layout } = this.#context
    return digest !== undefined && isWhole(port, layout.blob(digest), sizeBytes)
  }

  #readJournal(id: string) {
    const { port, layout } = this.#context
    const path = layout.journal(id)
    // a symbolic link, a folder or a huge file under that name is not one of our journals.
    const stat = port.lstatSync(path)
    if (!stat.isFile() || stat.size > MAX_JOURNAL_BYTES) return undefined
    const fd = port.openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW)
    try {
      const bytes = readUpToSync(port, fd, new Uint8Array(stat.size), 0)
      if (bytes.length < stat.size) return undefined
      return { journal: tryParseJournal(bytes), mtimeMs: stat.mtimeMs }
    } finally {
      port.closeSync(fd)
    }
  }

  /** As {@link IngestManager.partialStatus}. */
  status(key: string): PartialStatus | undefined {
    const held = this.#held(key)
    if (held !== undefined)
      return { key, sizeBytes: held.sizeBytes, writtenBytes: totalBytes(held.ranges()), isHeld: true }
    const journal = this.#remains.get(key)?.journal
    if (journal === undefined) return undefined
    return { key, sizeBytes: journal.sizeBytes, writtenBytes: totalBytes(journal.ranges), isHeld: false }
  }

  list(): PartialStatus[] {
    const keys = new Set([...this.#remains.keys(), ...[...this.#open].map(({ key }) => key)])
    return [...keys].sort().flatMap((key) => this.status(key) ?? [])
  }

  async abort(key: string): Promise<void> {
    this.#context.throwIfClosed()
    const held = this.#held(key)
    if (held !== undefined) return held.discard()
    await this.#keys.run(key, undefined, () => this.#forget(key))
  }

  async #forget(key: string): Promise<void> {
    const id = this.#remains.get(key)?.id
    if (id === undefined) return
    const { layout } = this.#context
    this.#remains.delete(key)
    await this.#context.discardPart(undefined, layout.journal(id))
    await this.#context.discardPart(undefined, layout.part(id))
  }

  #held(key: string): DiskPartialBlob | undefined {
    return [...this.#open].find((partial) => partial.key === key)
  }

  async open(key: PartialKey, options: PartialOptions = {}): Promise<DiskPartialBlob> {
    checkPartialKey(key)
    return this.#context.run(options.signal, async (signal) => {
      const release = await this.#keys.acquire(key.key, signal)
      try {
        const partial = await this.#resume(key, options, release)
        return partial ?? (await this.#create(key, options, release))
      } catch (error) {
        release()
        throw error
      }
    })
  }

  async #resume(key: PartialKey, options: PartialOptions, release: Release): Promise<DiskPartialBlob | undefined> {
    const remains = this.#remains.get(key.key)
    if (remains === undefined) return undefined
    const { id, journal } = remains
    const isSame =
      journal.sizeBytes === key.sizeBytes &&
      (key.digest === undefined || journal.digest === undefined || key.digest === journal.digest)
    const part = isSame ? await this.#openPart(id) : undefined
    if (part === undefined) {
      // another size or digest, or no part file: this partial cannot become the blob.
      await this.#forget(key.key)
      return undefined
    }
    const { fd, sizeBytes } = part
    const ranges = journal.ranges
      .filter(([start]) => start < sizeBytes)
      .map(([start, end]) => [start, Math.min(end, sizeBytes)] as const)
    this.#remains.delete(key.key)
    const digest = key.digest ?? journal.digest
    return this.#hand(id, fd, digest === undefined ? key : { ...key, digest }, ranges, options, release)
  }

  /** Undefined for a part that is not there, or not a regular file. @throws CasError `E_IO` */
  async #openPart(id: string): Promise<{ readonly fd: number; readonly sizeBytes: number } | undefined> {
    const { port, layout } = this.#context
    let fd: number | undefined
    try {
      fd = await port.open(layout.part(id), OPEN_PART)
      const stat = await port.fstat(fd)
      if (stat.isFile()) return { fd, sizeBytes: stat.size }
    } catch (error) {
      if (fd === undefined && (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ELOOP')) return undefined
      if (fd !== undefined) await port.close(fd).catch(() => undefined)
      throw ioError(error, 'open part', layout.part(id))
    }
    await port.close(fd).catch(() => undefined)
    return undefined
  }

  async #create(key: PartialKey, options: PartialOptions, release: Release): Promise<DiskPartialBlob> {
    const { port, layout } = this.#context
    await requireFreeSpace(this.#context, key.sizeBytes)
    const id = randomId()
    let fd: number
    try {
      fd = await port.open(layout.part(id), NEW_PART, 0o600)
    } catch (error) {
      throw ioError(error, 'create part', layout.part(id))
    }
    return this.#hand(id, fd, key, [], options, release)
  }

  #hand(
    id: string,
    fd: number,
    key: PartialKey,
    ranges: ByteRanges,
    options: PartialOptions,
    release: Release
  ): DiskPartialBlob {
    const partial: DiskPartialBlob = new DiskPartialBlob({
      context: this.#context,
      id,
      fd,
      key,
      ranges,
      options,
      checkpointMs: this.#checkpointMs,
      unsynced: this.#unsynced,
      onEnd: (remains) => {
        this.#open.delete(partial)
        if (remains !== undefined) this.#remains.set(key.key, remains)
        release()
      }
    })
    this.#open.add(partial)
    return partial
  }

  /** Releases all held partials, so that the next start can resume them. Returns the first failure. */
  async releaseAll(): Promise<CasError | undefined> {
    const results = await Promise.allSettled([...this.#open].map((partial) => partial.release()))
    const failed = results.find((result) => result.status === 'rejected')
    return failed === undefined ? undefined : ioError(failed.reason, 'release partial')
  }
}
