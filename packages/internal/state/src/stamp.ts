import { statSync } from 'node:fs'

const LOOK = { throwIfNoEntry: false } as const
const MAX_KEPT = 100_000

/**
 * Identifies a version of a file. Taken with a synchronous `stat` on purpose: that takes 2 µs, and the thread pool
 * behind the asynchronous one is shared with imports, whose reads every resolve would wait for.
 */
export interface FileStamp {
  readonly ino: number
  readonly size: number
  readonly mtimeMs: number
  readonly ctimeMs: number
}

/** Undefined when there is no such file. Other errors are thrown. */
export function stampOf(path: string): FileStamp | undefined {
  try {
    const stat = statSync(path, LOOK)
    return stat && { ino: stat.ino, size: stat.size, mtimeMs: stat.mtimeMs, ctimeMs: stat.ctimeMs }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOTDIR') return undefined
    throw error
  }
}

export function isUnchanged(path: string, { ino, size, mtimeMs, ctimeMs }: FileStamp): boolean {
  const now = stampOf(path)
  return now?.ino === ino && now.size === size && now.mtimeMs === mtimeMs && now.ctimeMs === ctimeMs
}

/** What was read from files, each valid until its stamp changes. Starts again at {@link MAX_KEPT}. */
export class StampedReads<T> {
  readonly #kept = new Map<string, { readonly stamp: FileStamp; readonly value: T }>()

  /** From memory; undefined when the file has to be read, or is absent. */
  cached(path: string): T | undefined {
    const hit = this.#kept.get(path)
    if (hit === undefined) return undefined
    if (isUnchanged(path, hit.stamp)) return hit.value
    this.#kept.delete(path)
    return undefined
  }

  async read(path: string, read: () => Promise<T | undefined>): Promise<T | undefined> {
    const hit = this.cached(path)
    if (hit !== undefined) return hit
    // the stamp is taken before the bytes are read: if the file is replaced in between, the next look misses, and never
    // takes old bytes for new ones.
    const stamp = stampOf(path)
    const value = stamp && (await read())
    if (stamp === undefined || value === undefined) return undefined
    if (this.#kept.size >= MAX_KEPT) this.#kept.clear()
    this.#kept.set(path, { stamp, value })
    return value
  }

  drop(path: string): void {
    this.#kept.delete(path)
  }
}
