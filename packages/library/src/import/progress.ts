import type { FileInProgress } from '@svc/internal-models'
import { MAX_SHOWN_FILES, type Work } from '../operations/work.ts'

/** Counts files and bytes of one import; totals are known in advance and never grow. */
export class ImportProgress {
  readonly #tell: Work['report']
  readonly #active = new Map<string, FileInProgress>()
  #filesDone = 0
  /** Of all files, those in progress included. */
  #bytesDone = 0
  /** From the source, wrong bytes included. */
  fetchedBytes = 0
  /** Copied from other blobs of the store. */
  reusedBytes = 0

  constructor(report: Work['report']) {
    this.#tell = report
  }

  start(...files: readonly { readonly name: string; readonly sizeBytes: number }[]): void {
    for (const { name, sizeBytes } of files) this.#active.set(name, { name, bytesDone: 0, bytesTotal: sizeBytes })
    this.#report()
  }

  advance(name: string, bytesDone: number): void {
    const file = this.#active.get(name)
    if (file === undefined) return
    const done = Math.min(bytesDone, file.bytesTotal)
    this.#bytesDone += done - file.bytesDone
    this.#active.set(name, { ...file, bytesDone: done })
    this.#report()
  }

  /** The whole files were read; files without relevant bytes are counted by {@link pass}. */
  finish(...names: readonly string[]): void {
    for (const name of names) {
      const file = this.#active.get(name)
      if (file === undefined) continue
      this.#active.delete(name)
      this.#filesDone++
      this.#bytesDone += file.bytesTotal - file.bytesDone
    }
    this.#report()
  }

  pass(count: number): void {
    this.#filesDone += count
    this.#report()
  }

  /** Shown as the message until cleared with `undefined`. */
  readonly wait = (message: string | undefined): void => this.#tell({ message })

  #report(): void {
    const files: FileInProgress[] = []
    for (const file of this.#active.values()) if (files.push(file) === MAX_SHOWN_FILES) break
    this.#tell({ filesDone: this.#filesDone, bytesDone: this.#bytesDone, files })
  }
}
