import type { Clock } from '@svc/internal-clock'
import { guarded } from '../net/guarded.ts'

/** Files are read for upload in chunks of this size, aligned. */
export const CHUNK_BYTES = 262_144

/** A source of chunks; the cache's key includes its identity. */
export interface ChunkSource {
  readonly id: number
  read(fileIndex: number, offset: number, target: Uint8Array): Promise<number>
  /** Past the cache: see `TorrentStorage`. */
  readNow?(fileIndex: number, offset: number, targets: readonly Uint8Array[]): number | undefined
}

/** A chunk of a file, pinned by whoever acquired it. */
export interface Chunk {
  readonly key: string
  /** Valid while pinned and `ready`, within the requested range only. */
  readonly bytes: Uint8Array
  readonly ready: boolean
  readonly error: Error | undefined
  /** Its read took so long that the next ones are worth beginning early. */
  readonly slow: boolean
}

interface Entry extends Chunk {
  slow: boolean
  ready: boolean
  error: Error | undefined
  pins: number
  waiting: Set<() => void>
}

/** Initial limit of chunks, enough while nothing is read twice: the system's own cache is behind this one. */
const FIRST_CHUNKS = 4
/** Longer reads come from a disk. */
const SLOW_MS = 2
/** The limit grows by this many when chunks are requested again shortly after their eviction. */
const MORE_CHUNKS = 8

/**
 * Read cache for the uploads of the whole engine. It starts small, and grows up to its budget if that saves reads. A
 * pinned chunk (needed by queued requests, or being written to a socket) is never evicted, and its buffer is not
 * reused: its bytes may still be on their way.
 *
 * Invariant: every buffer is in exactly one place: an entry, or the list of spare ones.
 */
export class ReadCache {
  readonly #budget: number
  readonly #clock: Clock
  /** Limit beyond which unpinned chunks are evicted. */
  #worthwhile: number
  /** Keys of evicted chunks, the latest last. */
  readonly #givenUp = new Set<string>()
  /** Least recently used first. */
  readonly #entries = new Map<string, Entry>()
  readonly #spare: Uint8Array[] = []
  readonly #starving = new Set<() => void>()
  #buffers = 0

  constructor(budgetBytes: number, clock: Clock) {
    this.#clock = clock
    this.#budget = Math.max(4, Math.floor(budgetBytes / CHUNK_BYTES))
    this.#worthwhile = Math.min(FIRST_CHUNKS, this.#budget)
  }

  /**
   * Pins the bytes `[from, to)` of a chunk and reads them if they are not cached; `notify` is called once when they are
   * ready or failed. Undefined: all memory is pinned. With `insist`, for a sender that holds no chunk, the budget may
   * be exceeded. Request only bytes that will not change: for an incomplete file, those of verified pieces.
   */
  acquire(
    source: ChunkSource,
    fileIndex: number,
    chunk: number,
    { from, to }: { readonly from: number; readonly to: number },
    insist: boolean,
    notify: () => void
  ): Chunk | undefined {
    const key = `${source.id}/${fileIndex}/${chunk}/${from}-${to}`
    const held = this.#entries.get(key)
    if (held !== undefined) {
      held.pins += 1
      this.#entries.delete(key)
      this.#entries.set(key, held)
      if (!held.ready) held.waiting.add(notify)
      return held
    }
    if (this.#givenUp.delete(key)) this.#worthwhile = Math.min(this.#budget, this.#worthwhile + MORE_CHUNKS)
    const buffer = this.#buffer(insist)
    if (buffer === undefined) {
      this.#starving.add(notify)
      return undefined
    }
    const entry: Entry = {
      key,
      bytes: buffer,
      ready: false,
      error: undefined,
      slow: false,
      pins: 1,
      waiting: new Set([notify])
    }
    this.#entries.set(key, entry)
    void this.#load(entry, source, fileIndex, chunk * CHUNK_BYTES, from, to)
    return entry
  }

  #buffer(insist: boolean): Uint8Array | undefined {
    const spare = this.#spare.pop()
    if (spare !== undefined) return spare
    if (this.#buffers >= this.#worthwhile) {
      for (const [key, entry] of this.#entries) {
        if (entry.pins > 0) continue
        this.#entries.delete(key)
        this.#noteGivenUp(key)
        return entry.bytes
      }
      if (this.#buffers >= this.#budget && !insist) return undefined
    }
    this.#buffers += 1
    return Buffer.allocUnsafeSlow(CHUNK_BYTES)
  }

  #noteGivenUp(key: string): void {
    this.#givenUp.add(key)
    if (this.#givenUp.size > this.#budget) this.#givenUp.delete(this.#givenUp.values().next().value!)
  }

  async #load(
    entry: Entry,
    source: ChunkSource,
    fileIndex: number,
    base: number,
    from: number,
    to: number
  ): Promise<void> {
    // The load itself holds a pin: the buffer belongs to the read until it ends.
    entry.pins += 1
    const begun = this.#clock.monotonic()
    try {
      let done = from
      while (done < to) {
        const count = await source.read(fileIndex, base + done, entry.bytes.subarray(done, to))
        if (count === 0) throw new Error(`the file ends at ${base + done}, ${to - done} bytes early`)
        done += count
      }
      entry.ready = true
      entry.slow = this.#clock.monotonic() - begun > SLOW_MS
    } catch (error) {
      entry.error = error as Error
      entry.ready = true
      if (this.#entries.get(entry.key) === entry) this.#entries.delete(entry.key)
    }
    const waiting = [...entry.waiting]
    entry.waiting.clear()
    this.release(entry)
    for (const notify of waiting) guarded(notify)()
  }

  /** Pins a chunk once more for whom it is pinned already, and who waits for it if it is not ready. */
  hold(chunk: Chunk): void {
    ;(chunk as Entry).pins += 1
  }

  /** Releases one pin. */
  release(chunk: Chunk): void {
    const entry = chunk as Entry
    entry.pins -= 1
    if (entry.pins > 0) return
    // Failed and forgotten entries are no longer in the map; surplus buffers go back to the system.
    if (this.#entries.get(entry.key) !== entry) {
      if (this.#buffers > this.#budget) this.#buffers -= 1
      else this.#spare.push(entry.bytes)
    } else if (this.#buffers > this.#budget) {
      this.#entries.delete(entry.key)
      this.#buffers -= 1
    }
    if (this.#starving.size === 0) return
    const starving = [...this.#starving]
    this.#starving.clear()
    // Deferred: the caller may be in the middle of its own queue.
    for (const notify of starving) queueMicrotask(guarded(notify))
  }

  leave(notify: () => void): void {
    this.#starving.delete(notify)
  }

  /** A torrent was removed, or its bytes changed: nothing of it may be served from the cache. */
  forget(source: ChunkSource): void {
    const prefix = `${source.id}/`
    for (const [key, entry] of this.#entries) {
      if (!key.startsWith(prefix)) continue
      this.#entries.delete(key)
      if (entry.pins === 0) this.#spare.push(entry.bytes)
    }
  }

  /** Frees everything that is not pinned. */
  trim(): void {
    this.#worthwhile = Math.min(FIRST_CHUNKS, this.#budget)
    this.#givenUp.clear()
    for (const [key, entry] of this.#entries) {
      if (entry.pins > 0) continue
      this.#entries.delete(key)
      this.#buffers -= 1
    }
    this.#buffers -= this.#spare.splice(0).length
  }

  /** Number of pinned chunks; 0 when nobody uploads. */
  get pinned(): number {
    let pinned = 0
    for (const entry of this.#entries.values()) if (entry.pins > 0) pinned += 1
    return pinned
  }

  checkInvariants(): void {
    for (const entry of this.#entries.values()) if (entry.pins < 0) throw new Error('a chunk was released twice')
    const spare = new Set(this.#spare)
    if (spare.size !== this.#spare.length) throw new Error('a spare buffer is listed twice')
    for (const entry of this.#entries.values())
      if (spare.has(entry.bytes)) throw new Error('a buffer is spare and in use')
  }
}
