import type { ActiveFile } from '@svc/client/protocol'
import type { JobProgress } from '../jobs/job-work.ts'

/** Counts files and bytes of one job; totals are known in advance and never grow. */
export class ImportProgress {
  readonly #update: (progress: JobProgress) => void
  readonly #active = new Map<string, ActiveFile>()
  #filesDone = 0
  #bytesDone = 0

  constructor(update: (progress: JobProgress) => void) {
    this.#update = update
  }

  start(name: string, bytesTotal: number): void {
    this.#active.set(name, { name, bytesDone: 0, bytesTotal })
    this.#publish()
  }

  /** `bytesDone` of this file so far. */
  advance(name: string, bytesDone: number): void {
    const file = this.#active.get(name)
    if (file === undefined) return
    this.#active.set(name, { ...file, bytesDone: Math.min(bytesDone, file.bytesTotal) })
    this.#publish()
  }

  /** The whole file was read; files without relevant bytes are counted by {@link pass}. */
  finish(name: string): void {
    const file = this.#active.get(name)
    if (file === undefined) return
    this.#active.delete(name)
    this.#filesDone++
    this.#bytesDone += file.bytesTotal
    this.#publish()
  }

  /** Counts files that are not read. */
  pass(count: number): void {
    this.#filesDone += count
    this.#publish()
  }

  /** Shown as the job's message until cleared with `undefined`. */
  readonly wait = (message: string | undefined): void => this.#update({ message })

  #publish(): void {
    const files = [...this.#active.values()]
    const bytesDone = files.reduce((sum, file) => sum + file.bytesDone, this.#bytesDone)
    this.#update({ filesDone: this.#filesDone, bytesDone, files })
  }
}
