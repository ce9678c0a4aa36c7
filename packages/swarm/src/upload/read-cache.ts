import { guarded } from '../net/guarded.ts'

/** Files are read for upload in chunks of this size, aligned. */
export const CHUNK_BYTES = 262_144

/** Where chunks come from; the identity is part of the cache's key. */
export interface ChunkSource {
  readonly id: number
  read(fileIndex: number, offset: number, target: Uint8Array): Promise<number>
}

/** A chunk of a file, pinned by whoever acquired it. */
export interface Chunk {
  readonly key: string
  /** Valid while pinned and `ready`, within the range asked for only. */
  readonly bytes: Uint8Array
  readonly ready: boolean
  readonly error: Error | undefined
}

interface Entry extends Chunk {
  ready: boolean
  error: Error | undefined
  pins: number
  waiting: Set<() => void>
}

/** Chunks that are held as long as nothing is read twice: the system's own cache is behind them. */
const FIRST_CHUNKS = 16
/** More are held by so many at a time, when chunks are asked for again that were given up lately. */
const MORE_CHUNKS = 8

/**
 * Read cache of the uploads of the whole engine. It begins small and grows up to its budget where that saves reads. A chunk that is pinned (queued requests need it, or a write to a socket is
 * under way) is never evicted nor its buffer reused: its bytes may still be on their way to a socket.
 * Invariant: every buffer is in exactly one place: an entry, or the list of spare ones.
 */
export class ReadCache {
  readonly #budget: number
  /** Unpinned chunks are given up beyond this. */
  #worthwhile: number
  /** Keys of chunks that were given up, the latest last. */
  readonly #givenUp = new Set<string>()
  /** Least recently used first. */
  readonly #entries = new Map<string, Entry>()
  readonly #spare: Uint8Array[] = []
  readonly #starving = new Set<() => void>()
  #buffers = 0

  constructor(budgetBytes: number) {
    this.#budget = Math.max(4, Math.floor(budgetBytes / CHUNK_BYTES))
    this.#worthwhile = Math.min(FIRST_CHUNKS, this.#budget)
  }

  /**
   * Pins the bytes `[from, to)` of a chunk, reading them when they are not here; `notify` is called once when they are ready or
   * failed. Undefined: all memory is pinned; with `insist` (for one who holds nothing) memory is found beyond the budget.
   * Only bytes that will not change may be asked for: of a file that is still being fetched, those of verified pieces.
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
    const entry: Entry = { key, bytes: buffer, ready: false, error: undefined, pins: 1, waiting: new Set([notify]) }
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
    // The load itself pins: the buffer belongs to the read until it is over.
    entry.pins += 1
    try {
      let done = from
      while (done < to) {
        const count = await source.read(fileIndex, base + done, entry.bytes.subarray(done, to))
        if (count === 0) throw new Error(`the file ends at ${base + done}, ${to - done} bytes early`)
        done += count
      }
      entry.ready = true
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

  /** Gives up one pin. */
  release(chunk: Chunk): void {
    const entry = chunk as Entry
    entry.pins -= 1
    if (entry.pins > 0) return
    // Failed or forgotten entries are not in the map any more; surplus buffers go back to the system.
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
    // Not now: the caller may be in the middle of its own queue.
    for (const notify of starving) queueMicrotask(guarded(notify))
  }

  leave(notify: () => void): void {
    this.#starving.delete(notify)
  }

  /** A torrent went, or its bytes changed: nothing of it is served from memory any more. */
  forget(source: ChunkSource): void {
    const prefix = `${source.id}/`
    for (const [key, entry] of this.#entries) {
      if (!key.startsWith(prefix)) continue
      this.#entries.delete(key)
      if (entry.pins === 0) this.#spare.push(entry.bytes)
    }
  }

  /** Frees what is not pinned. */
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

  /** Pinned chunks; 0 when nobody uploads. */
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
