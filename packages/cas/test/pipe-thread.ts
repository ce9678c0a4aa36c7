import { parentPort } from 'node:worker_threads'
import { type BlockPipe, PipeSender } from '../src/block-pipe.ts'
import { encodeError } from '../src/errors.ts'

// The other thread of block-pipe.test.ts: sends `seededByte`s in blocks of the given sizes.

export interface PipeJob {
  readonly pipe: BlockPipe
  readonly sizes: readonly number[]
  /** Fails with this instead of draining. */
  readonly failAtEnd?: boolean
  /** One byte per block: the sender adds 1 to those that it keeps. */
  readonly kept?: SharedArrayBuffer
}

/** The n-th byte of every test stream. */
export const byteAt = (position: number): number => (position * 31 + (position >> 8) * 17) & 255

export async function sendAll({ pipe, sizes, failAtEnd, kept }: PipeJob): Promise<void> {
  const sender = new PipeSender(pipe)
  try {
    let position = 0
    const marks = kept && new Uint8Array(kept)
    for (const [index, size] of sizes.entries()) {
      const block = await sender.next()
      for (let i = 0; i < size; i++) block[i] = byteAt(position++)
      sender.send(size)
      if (marks !== undefined && sender.keep()) {
        marks[index]! += 1
        // what is the sender's stays as it was sent until the sender asks for the next block
        if (block.subarray(0, size).some((byte, i) => byte !== byteAt(position - size + i))) marks[index] = 99
      }
    }
    if (failAtEnd === true) throw new Error('the source broke')
    await sender.drain()
  } finally {
    sender.close()
  }
}

parentPort?.on('message', async (job: PipeJob) => {
  const outcome = await sendAll(job).then(
    () => 'sent',
    (error: unknown) => encodeError(error).code
  )
  parentPort?.postMessage(outcome)
})
