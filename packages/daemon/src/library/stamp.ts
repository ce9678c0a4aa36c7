import { statSync } from 'node:fs'

const LOOK = { throwIfNoEntry: false } as const

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
  const stat = statusOf(path)
  return stat && { ino: stat.ino, size: stat.size, mtimeMs: stat.mtimeMs, ctimeMs: stat.ctimeMs }
}

/** Whether the file has that stamp. Makes no stamp of its own: a list of all models asks tens of thousands of times. */
export function isUnchanged(path: string, stamp: FileStamp): boolean {
  const stat = statusOf(path)
  return stat !== undefined && sameStamp(stat, stamp)
}

function statusOf(path: string): FileStamp | undefined {
  try {
    return statSync(path, LOOK)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOTDIR') return undefined
    throw error
  }
}

export const sameStamp = (a: FileStamp, b: FileStamp): boolean =>
  a.ino === b.ino && a.size === b.size && a.mtimeMs === b.mtimeMs && a.ctimeMs === b.ctimeMs
