import { hash } from 'node:crypto'
import { lstatSync, readFileSync, readlinkSync } from 'node:fs'
import { errnoOf } from '@svc/internal-errors'
import type { ShownFile } from './model.ts'

// What is ours at a path, as the record has it:
//   L<text>                  a symbolic link
//   T<SHA-256>               a small document
//   C<size> <time> <source>  a copy of a file of the store, by its length and its time of modification in milliseconds;
//                            source: its digest, which stays when the store moves, or the path of an unpacked file
//   R<size> <time> <source>  the same, where the file system shares the blocks: it takes no space

const sha256 = (bytes: string | Uint8Array): string => hash('sha256', bytes)

export const linkMark = (text: string): string => `L${text}`
export const textMark = (text: string): string => `T${sha256(text)}`
export const copyMark = (file: ShownFile, timeMs: number): string => `C${file.sizeBytes} ${timeMs} ${sourceOf(file)}`
/** The mark of a copy of which it turned out that it shares its blocks. */
export const sharingMark = (mark: string): string => mark.replace(/^C/, 'R')

const sourceOf = ({ digest, path }: ShownFile): string => digest ?? path

const COPY = /^(?<by>[CR])(?<size>\d+) (?<time>\d+) (?<source>.*)$/s

/** Whether a mark is that of a copy of this file, whenever it was made. */
export function isCopyOf(mark: string, file: ShownFile): boolean {
  const { size, source } = COPY.exec(mark)?.groups ?? {}
  return source === sourceOf(file) && Number(size) === file.sizeBytes
}

/** The space that what a mark stands for takes beyond the store's. */
export function copiedBytes(mark: string): number {
  const { by, size } = COPY.exec(mark)?.groups ?? {}
  return by === 'C' ? Number(size) : 0
}

/**
 * The time that a copy gets: that of its source as a whole even second, which every file system keeps, and which a
 * program that rewrites the copy does not hit.
 */
export const copyTimeMs = ({ path }: ShownFile): number => Math.floor(lstatSync(path).mtimeMs / 2000) * 2000

/** Above this, a document is none of ours. */
const MAX_TEXT_BYTES = 16 << 20

/** Whether what lies at a path is what a mark stands for; undefined if nothing is there. */
export function lies(path: string, mark: string): boolean | undefined {
  const rest = mark.slice(1)
  if (mark.startsWith('L')) {
    const link = linkAt(path)
    return link === undefined ? undefined : link === rest
  }
  return ifThere(() => {
    const stats = lstatSync(path)
    if (!stats.isFile()) return false
    if (mark.startsWith('T')) return stats.size <= MAX_TEXT_BYTES && sha256(readFileSync(path)) === rest
    const { size, time } = COPY.exec(mark)?.groups ?? {}
    return stats.size === Number(size) && stats.mtimeMs === Number(time)
  })
}

/** The text of the link at a path; empty for what is none, undefined if nothing is there. */
export function linkAt(path: string): string | undefined {
  return ifThere(() => {
    try {
      return readlinkSync(path)
    } catch (error) {
      if (errnoOf(error) === 'EINVAL') return ''
      throw error
    }
  })
}

function ifThere<T>(look: () => T): T | undefined {
  try {
    return look()
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(errnoOf(error) ?? '')) return undefined
    throw error
  }
}
