import { type Clock, systemClock } from '@svc/internal-clock'
import { type FileStamp, isUnchanged, stampOf } from './stamp.ts'

/**
 * What was read of a folder that was written to later than this before is read again the next time: a change in the same tick of its clock as an
 * earlier one would not show. The coarsest file systems count two seconds.
 */
const QUIET_MS = 2_000

interface CachedListing<Names> {
  readonly stamp: FileStamp
  readonly names: Names
}

/**
 * The names in folders, in any form, kept while one look at the folder says that nothing was added to it or taken away since. For folders on the
 * store's own disk, whose times this machine's clock makes. What a file holds may change without a trace in its folder.
 */
export class FolderListings<Names> {
  readonly #kept = new Map<string, CachedListing<Names>>()
  readonly #countOf: (names: Names) => number
  readonly #maxCount: number
  readonly #clock: Pick<Clock, 'now'>
  #count = 0

  /** Keeps `maxCount` names in total. `clock` is the one that files get their times from. */
  constructor(countOf: (names: Names) => number, maxCount: number, clock: Pick<Clock, 'now'> = systemClock) {
    this.#countOf = countOf
    this.#maxCount = maxCount
    this.#clock = clock
  }

  /** What {@link read} found the last time, if it is still so. */
  now(folder: string): Names | undefined {
    const kept = this.#kept.get(folder)
    if (kept === undefined || isUnchanged(folder, kept.stamp)) return kept?.names
    this.#forget(folder)
    return undefined
  }

  /** Reads the folder. What `read` throws is passed on, and nothing is kept. */
  async read(folder: string, read: (folder: string) => Promise<Names>): Promise<Names> {
    const stamp = stampOf(folder)
    const isQuiet = stamp !== undefined && this.#clock.now() - Math.max(stamp.mtimeMs, stamp.ctimeMs) > QUIET_MS
    const names = await read(folder)
    this.#forget(folder)
    if (isQuiet && isUnchanged(folder, stamp)) this.#keep(folder, { stamp, names })
    return names
  }

  #keep(folder: string, kept: CachedListing<Names>): void {
    const count = this.#countOf(kept.names)
    if (this.#count + count > this.#maxCount) return
    this.#kept.set(folder, kept)
    this.#count += count
  }

  #forget(folder: string): void {
    const kept = this.#kept.get(folder)
    if (kept === undefined) return
    this.#kept.delete(folder)
    this.#count -= this.#countOf(kept.names)
  }
}
