import { mkdtempSync, rmSync } from 'node:fs'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'

/** A temporary folder for one row. */
export class Scratch {
  readonly path: string
  #count = 0

  constructor(parent: string) {
    this.path = mkdtempSync(join(parent, 'svc-bench-'))
  }

  /** Creates an empty folder. */
  async folder(): Promise<string> {
    const path = join(this.path, String(this.#count++))
    await mkdir(path, { mode: 0o700 })
    return path
  }

  /** Removes one of its folders. */
  async drop(path: string): Promise<void> {
    if (!path.startsWith(`${this.path}/`)) throw new RangeError(`${path} is outside ${this.path}`)
    await rm(path, { recursive: true, force: true })
  }

  /** Removes everything; synchronous, so that it can run in exit handlers. */
  remove(): void {
    rmSync(this.path, { recursive: true, force: true })
  }
}
