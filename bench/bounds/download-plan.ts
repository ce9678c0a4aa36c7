/** What the threads of `hub-process.ts` share. */
export interface Download {
  readonly url: string
  readonly sizeBytes: number
  readonly fd: number
  /** Of each block: 1 when it is written. */
  readonly written: Int32Array
  /** The next range to fetch. */
  readonly next: Int32Array
}

export const BLOCK_BYTES = 1 << 20
export const RANGE_BYTES = 32 << 20
