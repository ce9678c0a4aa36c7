import type { LayoutFile, TorrentLayout } from '@svc/metainfo'
import { Bitfield } from '../bitfield.ts'
import { SwarmError } from '../errors.ts'
import type { Emit, EventOf } from '../events.ts'
import { reportDefect } from '../net/guarded.ts'
import type { FileWriter, TorrentStorage } from '../storage.ts'

/** The torrent fails when the storage's own check has refused a file this often: the same bytes would come again. */
const MAX_REFUSALS = 2

export type FileProgressEvents = 'file-done' | 'file-refused' | 'failed'

/**
 * Which pieces are verified, file by file, and the storage's writers.
 *
 * Invariants: `#left[file]` counts its pieces that `have` lacks; a file is reported to the storage once, when that
 * count is 0.
 */
export class FileProgress {
  readonly have: Bitfield
  readonly #layout: TorrentLayout
  readonly #storage: TorrentStorage
  readonly #emit: Emit<FileProgressEvents>
  readonly #left: number[]
  readonly #done: boolean[]
  readonly #refusals = new Map<number, number>()
  readonly #writers = new Map<number, Promise<FileWriter>>()
  #filesLeft: number
  #verifiedBytes = 0
  #closed = false

  constructor(layout: TorrentLayout, storage: TorrentStorage, emit: Emit<FileProgressEvents>) {
    this.#layout = layout
    this.#storage = storage
    this.#emit = emit
    this.have = new Bitfield(layout.pieceCount)
    this.#left = layout.files.map((file) => file.pieceCount)
    this.#done = layout.files.map(() => false)
    this.#filesLeft = layout.files.length
  }

  get filesLeft(): number {
    return this.#filesLeft
  }

  get verifiedBytes(): number {
    return this.#verifiedBytes
  }

  isDone(file: LayoutFile): boolean {
    return this.#done[file.index]!
  }

  /** Marks the whole file as verified: the storage vouches for it. */
  trust(file: LayoutFile): void {
    for (let at = 0; at < file.pieceCount; at += 1) this.have.set(file.firstPiece + at)
    this.#left[file.index] = 0
    this.#done[file.index] = true
    this.#filesLeft -= 1
    this.#verifiedBytes += file.lengthBytes
  }

  writer(fileIndex: number): Promise<FileWriter> {
    let writer = this.#writers.get(fileIndex)
    if (writer === undefined) {
      writer = this.#storage.writer(fileIndex)
      this.#writers.set(fileIndex, writer)
    }
    return writer
  }

  /** A piece is verified and stored. False if it was before. */
  piece(piece: number): boolean {
    if (!this.have.set(piece)) return false
    const { file, lengthBytes } = this.#layout.span(piece)
    this.#verifiedBytes += lengthBytes
    this.#left[file.index]! -= 1
    if (this.#left[file.index] === 0) this.finish(file).catch(reportDefect)
    return true
  }

  /** Every piece is there, or the file has none: the storage makes the file durable, or refuses it. */
  async finish(file: LayoutFile): Promise<void> {
    let event: EventOf<FileProgressEvents>
    try {
      const verdict = await this.#storage.fileComplete(file.index)
      if (this.#closed) return
      event = verdict === 'ok' ? this.#accepted(file) : await this.#refused(file)
    } catch (cause) {
      const error = new SwarmError('E_STORAGE', 'complete', `storing ${file.path} failed`, { cause })
      event = { kind: 'failed', error }
    }
    if (!this.#closed) this.#emit(event)
  }

  #accepted(file: LayoutFile): EventOf<'file-done'> {
    this.#done[file.index] = true
    this.#filesLeft -= 1
    this.#writers.delete(file.index)
    return { kind: 'file-done', file }
  }

  async #refused(file: LayoutFile): Promise<EventOf<'file-refused' | 'failed'>> {
    const refusals = (this.#refusals.get(file.index) ?? 0) + 1
    this.#refusals.set(file.index, refusals)
    if (refusals >= MAX_REFUSALS) {
      const error = new SwarmError(
        'E_STORAGE',
        'refused',
        `the storage refused ${file.path}, whose pieces are all right: the torrent does not contain what was expected`,
        { details: { path: file.path } }
      )
      return { kind: 'failed', error }
    }
    this.#writers.delete(file.index)
    const writer = await this.writer(file.index)
    writer.unmark(0, file.lengthBytes)
    this.lose(file)
    return { kind: 'file-refused', file }
  }

  lose(file: LayoutFile): void {
    for (let piece = file.firstPiece; piece < file.firstPiece + file.pieceCount; piece += 1) {
      if (!this.have.clear(piece)) continue
      this.#verifiedBytes -= this.#layout.span(piece).lengthBytes
    }
    this.#left[file.index] = file.pieceCount
    if (this.#done[file.index]) {
      this.#done[file.index] = false
      this.#filesLeft += 1
    }
  }

  close(): void {
    this.#closed = true
  }
}
