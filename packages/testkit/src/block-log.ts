import { closeSync, openSync, readSync, writeSync } from 'node:fs'

const HEAD_BYTES = 13
const WRITE = 'W'.charCodeAt(0)
const FLUSH = 'F'.charCodeAt(0)
/** A write to a disk may be interrupted between two of these. */
const SECTOR_BYTES = 4096

/** A write, by the position of its bytes in the log. */
interface LoggedWrite {
  readonly at: number
  readonly offset: number
  readonly sizeBytes: number
}

export interface Replayed {
  /** Writes in the disk's cache when the power failed. */
  readonly cached: number
  /** Of those, the ones lost entirely or partly. */
  readonly lost: number
}

/**
 * What a disk with a volatile write cache holds after a power cut at any moment of a recording (`recording_disk.py`):
 * everything written before the last flush, and a random subset of later writes, torn at sectors and in any order. One
 * recording serves for any number of cuts. Moments are positions in the log, requested in ascending order.
 */
export class BlockLog {
  readonly #log: number
  readonly #image: number
  #at = 0
  #cached: LoggedWrite[] = []

  /** `imageFile` is the disk as it was when the recording began; it is updated to what is durable at each moment. */
  constructor(logFile: string, imageFile: string) {
    this.#log = openSync(logFile, 'r')
    this.#image = openSync(imageFile, 'r+')
  }

  /** Updates the image to what is durable at `position`. */
  advanceTo(position: number): void {
    const head = Buffer.alloc(HEAD_BYTES)
    for (;;) {
      if (readSync(this.#log, head, 0, HEAD_BYTES, this.#at) < HEAD_BYTES) return
      const sizeBytes = head.readUInt32LE(9)
      const next = this.#at + HEAD_BYTES + sizeBytes
      if (next > position) return
      if (head[0] === FLUSH) {
        for (const write of this.#cached) this.#copy(write, write.sizeBytes, this.#image)
        this.#cached = []
      } else if (head[0] === WRITE) {
        this.#cached.push({ at: this.#at + HEAD_BYTES, offset: Number(head.readBigUInt64LE(1)), sizeBytes })
      } else throw new Error(`the log of the disk is damaged at ${this.#at}`)
      this.#at = next
    }
  }

  /**
   * Adds to a copy of the image what the cache had written out when the power failed. `random` returns numbers in [0,
   * 1).
   */
  cutInto(imageFile: string, random: () => number): Replayed {
    const image = openSync(imageFile, 'r+')
    try {
      // one cut keeps nearly nothing, another nearly everything
      const share = random()
      const kept = this.#cached.filter(() => random() < share)
      for (let i = kept.length - 1; i > 0; i -= 1) {
        const j = Math.floor(random() * (i + 1))
        const write = kept[i]!
        kept[i] = kept[j]!
        kept[j] = write
      }
      let lost = this.#cached.length - kept.length
      for (const write of kept) {
        const sectors = Math.max(1, Math.ceil(write.sizeBytes / SECTOR_BYTES))
        const torn = random() < 0.3
        if (torn) lost += 1
        this.#copy(write, torn ? Math.floor(random() * sectors) * SECTOR_BYTES : write.sizeBytes, image)
      }
      return { cached: this.#cached.length, lost }
    } finally {
      closeSync(image)
    }
  }

  close(): void {
    closeSync(this.#log)
    closeSync(this.#image)
  }

  #copy({ at, offset }: LoggedWrite, sizeBytes: number, image: number): void {
    const bytes = Buffer.alloc(sizeBytes)
    if (readSync(this.#log, bytes, 0, sizeBytes, at) !== sizeBytes) throw new Error('the log of the disk is cut off')
    writeSync(image, bytes, 0, sizeBytes, offset)
  }
}
