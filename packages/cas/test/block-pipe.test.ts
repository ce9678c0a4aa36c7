import { once } from 'node:events'
import { MessageChannel, Worker } from 'node:worker_threads'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newPipeMemory, PipeTaker, READ_BYTES } from '../src/block-pipe.ts'
import { CasError } from '../src/errors.ts'
import { byteAt, type PipeJob, sendAll } from './pipe-thread.ts'

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await turn()
}

/** A pipe whose taking end checks what it gets, here; `refuseAt` throws at that block. */
function takingEnd(breaths: readonly number[] = [1], refuseAt = Infinity) {
  const { port1, port2 } = new MessageChannel()
  const memory = newPipeMemory()
  const lengths: number[] = []
  let position = 0
  let wrong = 0
  let breath = 0
  let onBlock: (count: number) => void = () => undefined
  const taker = new PipeTaker(
    { ...memory, port: port1 },
    (bytes) => {
      if (lengths.length === refuseAt) throw new CasError('E_NO_SPACE', 'full')
      for (const byte of bytes) if (byte !== byteAt(position++)) wrong++
      lengths.push(bytes.length)
      onBlock(lengths.length)
    },
    () => turns(breaths[breath++ % breaths.length] ?? 1)
  )
  return {
    pipe: { ...memory, port: port2 },
    taker,
    lengths,
    wrong: () => wrong,
    onBlock: (callback: (count: number) => void) => (onBlock = callback)
  }
}

let worker: Worker
beforeAll(() => {
  worker = new Worker(new URL('./pipe-thread.ts', import.meta.url))
})
afterAll(() => worker.terminate())
async function sendFromThread(job: PipeJob): Promise<string> {
  const outcome = once(worker, 'message')
  worker.postMessage(job, [job.pipe.port])
  return ((await outcome) as [string])[0]
}

const size = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 1, max: 3000 }) },
  { weight: 1, arbitrary: fc.constantFrom(1, READ_BYTES - 1, READ_BYTES) }
)
const sizes = fc.array(size, { maxLength: 40 })
const breaths = fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 5 })

describe('what goes through a pipe arrives whole and in order', () => {
  test('within one thread, in alternating turns', async () => {
    await fc.assert(
      fc.asyncProperty(sizes, breaths, async (sizes, breaths) => {
        const end = takingEnd(breaths)
        await sendAll({ pipe: end.pipe, sizes })
        end.taker.close()
        expect(end.lengths).toEqual(sizes)
        expect(end.wrong()).toBe(0)
      }),
      { numRuns: 40 }
    )
  })

  test('between two threads', async () => {
    await fc.assert(
      fc.asyncProperty(sizes, breaths, async (sizes, breaths) => {
        const end = takingEnd(breaths)
        expect(await sendFromThread({ pipe: end.pipe, sizes })).toBe('sent')
        end.taker.close()
        expect(end.lengths).toEqual(sizes)
        expect(end.wrong()).toBe(0)
      }),
      { numRuns: 60 }
    )
  })

  test('while either side sleeps repeatedly', async () => {
    // single bytes: the sides meet at the full and at the empty ring all the time.
    const many = Array.from({ length: 5000 }, () => 1)
    for (const breaths of [[0], [1], [0, 0, 0, 9], [3]]) {
      const end = takingEnd(breaths)
      expect(await sendFromThread({ pipe: end.pipe, sizes: many })).toBe('sent')
      end.taker.close()
      expect(end.lengths.length).toBe(many.length)
      expect(end.wrong()).toBe(0)
    }
  })
})

describe('when one side ends, so does the other', () => {
  const endless = Array.from({ length: 500 }, () => 1000)

  test('a receiver that refuses any block: the sender gets its error', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 30 }), fc.nat({ max: 29 }), async (count, at) => {
        const refuseAt = at % count
        const end = takingEnd([1], refuseAt)
        expect(await sendFromThread({ pipe: end.pipe, sizes: endless.slice(0, count) })).toBe('E_NO_SPACE')
        expect(end.lengths.length).toBe(refuseAt)
        end.taker.close()
      }),
      { numRuns: 40 }
    )
  })

  test('a receiver that closes at any block: the sender is aborted', async () => {
    for (const at of [1, 2, 5, 6, 7, 50]) {
      const end = takingEnd()
      end.onBlock((count) => {
        if (count === at) end.taker.close()
      })
      expect(await sendFromThread({ pipe: end.pipe, sizes: endless })).toBe('E_ABORTED')
      expect(end.lengths.length).toBe(at)
    }
  })

  test('a receiver that was closed before the first block', async () => {
    const end = takingEnd()
    end.taker.close()
    expect(await sendFromThread({ pipe: end.pipe, sizes: endless })).toBe('E_ABORTED')
    expect(end.lengths).toEqual([])
  })

  test('a sender that aborts: the receiver has a prefix, and no open files', async () => {
    const end = takingEnd()
    const closed = once(end.pipe.port, 'close')
    await expect(sendAll({ pipe: end.pipe, sizes: [5, 6, 7], failAtEnd: true })).rejects.toThrow(Error)
    await closed
    end.taker.close()
    expect(end.lengths).toEqual([5, 6, 7].slice(0, end.lengths.length))
    expect(end.wrong()).toBe(0)
  })

  test('a receiving thread that dies: the sender is aborted', async () => {
    const other = new Worker('require("node:worker_threads").parentPort.on("message", () => process.exit())', {
      eval: true
    })
    const { port1, port2 } = new MessageChannel()
    const sending = sendAll({ pipe: { ...newPipeMemory(), port: port2 }, sizes: endless })
    other.postMessage(port1, [port1])
    await expect(sending).rejects.toMatchObject({ code: 'E_ABORTED' })
    await other.terminate()
  })
})
