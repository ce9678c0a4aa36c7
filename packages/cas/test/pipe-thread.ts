import { parentPort } from 'node:worker_threads'
import { type BlockPipe, PipeSender } from '../src/block-pipe.ts'
import { encodeError } from '../src/errors.ts'

// The other thread of block-pipe.test.ts: sends the bytes of `byteAt` in blocks of the given sizes.

export interface PipeJob {
  readonly pipe: BlockPipe
  readonly sizes: readonly number[]
  /** Fails with this instead of draining. */
  readonly failAtEnd?: boolean
}

/** The n-th byte of every test stream. */
export const byteAt = (position: number): number => (position * 31 + (position >> 8) * 17) & 255

export async function sendAll({ pipe, sizes, failAtEnd }: PipeJob): Promise<void> {
  const sender = new PipeSender(pipe)
  try {
    let position = 0
    for (const size of sizes) {
      const block = await sender.next()
      for (let i = 0; i < size; i++) block[i] = byteAt(position++)
      sender.send(size)
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
    (error: unknown) => String(encodeError(error).fields.code)
  )
  parentPort?.postMessage(outcome)
})
