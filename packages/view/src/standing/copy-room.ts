import { lstatSync, statfsSync } from 'node:fs'
import { transferCost } from '../reflink.ts'
import type { ShownFile } from './model.ts'

/** Stays free for the small documents of a view. */
const SPARE_BYTES = 1 << 20

/** The room for copies in a folder: what is taken of it, and what was asked for in vain. */
export class CopyRoom {
  readonly #folder: string
  readonly #sharing = new Map<number, boolean>()
  readonly #freeBytes: number
  readonly #goingBytes: number
  #takenBytes = 0
  #refused = 0
  #refusedBytes = 0

  /** @param goingBytes of copies that go, which makes room */
  constructor(folder: string, goingBytes: number) {
    const { bavail, bsize } = statfsSync(folder)
    this.#folder = folder
    this.#freeBytes = bavail * bsize - SPARE_BYTES
    this.#goingBytes = goingBytes
  }

  /** Whether what was taken fits only once the copies that go have gone. */
  get isTight(): boolean {
    return this.#takenBytes > 0 && this.#takenBytes > this.#freeBytes
  }

  /** @returns whether all of these files fit, in addition to those that were taken before */
  async take(files: readonly ShownFile[]): Promise<boolean> {
    let bytes = 0
    for (const file of files) if (!(await this.#sharesBlocks(file.path))) bytes += file.sizeBytes
    if (bytes > 0 && bytes > this.#leftBytes) {
      this.#refused++
      this.#refusedBytes += bytes
      return false
    }
    this.#takenBytes += bytes
    return true
  }

  /** What {@link take} refused, as a sentence; undefined if that is nothing. */
  get lacking(): string | undefined {
    if (this.#refused === 0) return undefined
    const models = this.#refused === 1 ? 'a model' : `${this.#refused} models`
    const bytes = Math.max(1, this.#refusedBytes - Math.max(0, this.#leftBytes))
    return `copies of ${models} do not fit at ${this.#folder}: they need ${bytes} bytes more`
  }

  get #leftBytes(): number {
    return this.#freeBytes + this.#goingBytes - this.#takenBytes
  }

  /** Tried once for each device of the store. */
  async #sharesBlocks(path: string): Promise<boolean> {
    const { dev } = lstatSync(path)
    const known = this.#sharing.get(dev)
    if (known !== undefined) return known
    const sharing = (await transferCost(path, this.#folder)).by === 'reflink'
    this.#sharing.set(dev, sharing)
    return sharing
  }
}
