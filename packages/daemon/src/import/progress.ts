import { type ActiveFile, MAX_ACTIVE_FILES } from '@svc/client/protocol'
import type { JobProgress } from '../jobs/job-work.ts'

/** Counts files and bytes of one job; totals are known in advance and never grow. */
export class ImportProgress {
  readonly #update: (progress: JobProgress) => void
  readonly #active = new Map<string, ActiveFile>()
  #filesDone = 0
  /** Of all files, those in progress included. */
  #bytesDone = 0
  /** From the source, wrong bytes included. */
  fetchedBytes = 0
  /** Copied from other blobs of the store. */
  reusedBytes = 0

  constructor(update: (progress: JobProgress) => void) {
    this.#update = update
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

  /** Shown as the job's message until cleared with `undefined`. */
  readonly wait = (message: string | undefined): void => this.#update({ message })

  #report(): void {
    // an import of many small files has hundreds of them in progress
    const files: ActiveFile[] = []
    for (const file of this.#active.values()) if (files.push(file) === MAX_ACTIVE_FILES) break
    this.#update({ filesDone: this.#filesDone, bytesDone: this.#bytesDone, files })
  }
}
