import type { MessagePort } from 'node:worker_threads'
import { yieldToEventLoop } from '@svc/internal-concurrency'
import type { SerializedError } from '@svc/internal-errors'
import { abortError, decodeError, encodeError } from './errors.ts'

/**
 * Bytes per read, write and message. Measured: larger blocks fall out of the CPU cache, smaller ones cost more
 * messages.
 */
export const READ_BYTES = 1 << 20

const BLOCKS = 6
/** Wake the other side when this many blocks wait for it: a wake-up costs as much CPU as hashing 200 KiB. */
const WORTH_WAKING = BLOCKS / 2
/** Indexes of the control words; the lengths of the blocks follow. */
const [SENT, TAKEN, TAKER_ASLEEP, SENDER_ASLEEP, LENGTHS] = [0, 1, 2, 3, 4] as const

/**
 * Passes blocks from one thread to another: a ring buffer in shared memory, with messages only to wake a side that
 * sleeps.
 *
 * Invariants: `0 <= SENT - TAKEN <= BLOCKS`; only the sender raises SENT, only the taker raises TAKEN; a side sets its
 * ASLEEP flag before it checks once more and waits, so that no wake-up is lost.
 */
export interface BlockPipe {
  readonly port: MessagePort
  readonly control: SharedArrayBuffer
  readonly blocks: readonly SharedArrayBuffer[]
}

type Message = 'wake' | { readonly error: SerializedError }

/** The shared memory of a pipe; the two ports are those of one MessageChannel. */
export function newPipeMemory(): Omit<BlockPipe, 'port'> {
  const control = new SharedArrayBuffer(4 * (LENGTHS + BLOCKS))
  new Int32Array(control)[TAKER_ASLEEP] = 1
  return { control, blocks: Array.from({ length: BLOCKS }, () => new SharedArrayBuffer(READ_BYTES)) }
}

export class PipeSender {
  readonly #port: MessagePort
  readonly #control: Int32Array
  readonly #blocks: readonly Uint8Array[]
  #error: SerializedError | undefined
  #wake: (() => void) | undefined

  constructor(pipe: BlockPipe) {
    this.#port = pipe.port
    this.#control = new Int32Array(pipe.control)
    this.#blocks = pipe.blocks.map((block) => new Uint8Array(block))
    this.#port.on('message', (message: Message) => {
      if (message !== 'wake') this.#error ??= message.error
      this.#wake?.()
    })
    // the other side ended, and reports the reason itself.
    this.#port.on('close', () => {
      this.#error ??= encodeError(abortError())
      this.#wake?.()
    })
  }

  /** A free block to fill. @throws the error that the taker failed with */
  async next(): Promise<Uint8Array> {
    await this.#until(() => this.#waiting() < BLOCKS)
    return this.#blocks[Atomics.load(this.#control, SENT) % BLOCKS] as Uint8Array
  }

  /** Sends the block that {@link next} returned last. Its bytes stay unchanged until {@link next} is called again. */
  send(length: number): void {
    const sent = Atomics.load(this.#control, SENT)
    this.#control[LENGTHS + (sent % BLOCKS)] = length
    Atomics.store(this.#control, SENT, sent + 1)
    if (this.#waiting() >= WORTH_WAKING) this.#wakeTaker()
  }

  /** Resolves when all blocks were taken. @throws the error that the taker failed with */
  async drain(): Promise<void> {
    this.#wakeTaker()
    await this.#until(() => this.#waiting() === 0)
  }

  close(): void {
    this.#port.close()
  }

  #waiting(): number {
    return Atomics.load(this.#control, SENT) - Atomics.load(this.#control, TAKEN)
  }

  #wakeTaker(): void {
    if (Atomics.exchange(this.#control, TAKER_ASLEEP, 0) === 1) this.#port.postMessage('wake' satisfies Message)
  }

  async #until(ready: () => boolean): Promise<void> {
    while (this.#error === undefined && !ready()) {
      const woken = new Promise<void>((resolve) => (this.#wake = resolve))
      Atomics.store(this.#control, SENDER_ASLEEP, 1)
      if (ready()) break
      await woken
    }
    this.#wake = undefined
    Atomics.store(this.#control, SENDER_ASLEEP, 0)
    if (this.#error !== undefined) throw decodeError(this.#error)
  }
}

/**
 * The receiving end of a pipe. Yields to the event loop after each block; when `take` throws, all further blocks are
 * refused.
 */
export class PipeTaker {
  readonly #port: MessagePort
  readonly #control: Int32Array
  readonly #blocks: readonly Uint8Array[]
  readonly #take: (bytes: Uint8Array) => void
  readonly #yieldTurn: () => Promise<void>
  #closed = false

  constructor(pipe: BlockPipe, take: (bytes: Uint8Array) => void, yieldTurn: () => Promise<void> = yieldToEventLoop) {
    this.#port = pipe.port
    this.#control = new Int32Array(pipe.control)
    this.#blocks = pipe.blocks.map((block) => new Uint8Array(block))
    this.#take = take
    this.#yieldTurn = yieldTurn
    this.#port.on('message', () => void this.#run())
  }

  close(): void {
    this.#closed = true
    this.#port.close()
  }

  async #run(): Promise<void> {
    try {
      for (;;) {
        const taken = Atomics.load(this.#control, TAKEN)
        if (taken === Atomics.load(this.#control, SENT)) {
          Atomics.store(this.#control, TAKER_ASLEEP, 1)
          // sleep, unless a block arrived in between that nobody else has noticed.
          if (taken === Atomics.load(this.#control, SENT) || Atomics.exchange(this.#control, TAKER_ASLEEP, 0) === 0)
            return
          continue
        }
        const slot = taken % BLOCKS
        this.#take((this.#blocks[slot] as Uint8Array).subarray(0, this.#control[LENGTHS + slot]))
        Atomics.store(this.#control, TAKEN, taken + 1)
        const left = Atomics.load(this.#control, SENT) - taken - 1
        if (left <= BLOCKS - WORTH_WAKING && Atomics.exchange(this.#control, SENDER_ASLEEP, 0) === 1) {
          this.#port.postMessage('wake' satisfies Message)
        }
        await this.#yieldTurn()
        if (this.#closed) return
      }
    } catch (error) {
      this.#port.postMessage({ error: encodeError(error) } satisfies Message)
    }
  }
}
