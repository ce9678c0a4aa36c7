import type { MessagePort } from 'node:worker_threads'
import { yieldToEventLoop } from '@svc/internal-concurrency'
import { abortError, decodeError, encodeError, type WireError } from './errors.ts'

/** Bytes per read, write and message: measured, larger ones leave the cache, smaller ones cost messages. */
export const READ_BYTES = 1 << 20

const BLOCKS = 6
/** Wake the other side once so many blocks wait for it: a wake-up costs as much CPU as hashing 200 KiB. */
const WORTH_WAKING = BLOCKS / 2
/** Slots of the control words; the lengths of the blocks follow. */
const [SENT, TAKEN, TAKER_ASLEEP, SENDER_ASLEEP, LENGTHS] = [0, 1, 2, 3, 4] as const

/**
 * One thread's blocks for another: a ring in shared memory, with messages only to wake a side that sleeps.
 * Invariants: `0 <= SENT - TAKEN <= BLOCKS`; the sender alone raises SENT, the taker alone TAKEN; a side sets its ASLEEP
 * before it looks once more and waits, so that no wake-up is lost.
 */
export interface BlockPipe {
  readonly port: MessagePort
  readonly control: SharedArrayBuffer
  readonly blocks: readonly SharedArrayBuffer[]
}

type Message = 'wake' | { readonly error: WireError }

/** The shared part of a pipe; the ports are two ends of one MessageChannel. */
export function newPipeMemory(): Omit<BlockPipe, 'port'> {
  const control = new SharedArrayBuffer(4 * (LENGTHS + BLOCKS))
  new Int32Array(control)[TAKER_ASLEEP] = 1
  return { control, blocks: Array.from({ length: BLOCKS }, () => new SharedArrayBuffer(READ_BYTES)) }
}

/** The end that fills blocks. */
export class PipeSender {
  readonly #port: MessagePort
  readonly #control: Int32Array
  readonly #blocks: readonly Uint8Array[]
  #error: WireError | undefined
  #wake: (() => void) | undefined

  constructor(pipe: BlockPipe) {
    this.#port = pipe.port
    this.#control = new Int32Array(pipe.control)
    this.#blocks = pipe.blocks.map((block) => new Uint8Array(block))
    this.#port.on('message', (message: Message) => {
      if (message !== 'wake') this.#error ??= message.error
      this.#wake?.()
    })
    // The taker went away, for a reason that it reports itself.
    this.#port.on('close', () => {
      this.#error ??= encodeError(abortError())
      this.#wake?.()
    })
  }

  /** A free block to fill. @throws what the taker failed with */
  async next(): Promise<Uint8Array> {
    await this.#until(() => this.#waiting() < BLOCKS)
    return this.#blocks[Atomics.load(this.#control, SENT) % BLOCKS] as Uint8Array
  }

  /** Hands over the block last given. Its bytes stay as they are until {@link next}. */
  send(length: number): void {
    const sent = Atomics.load(this.#control, SENT)
    this.#control[LENGTHS + (sent % BLOCKS)] = length
    Atomics.store(this.#control, SENT, sent + 1)
    if (this.#waiting() >= WORTH_WAKING) this.#wakeTaker()
  }

  /** Until everything was taken. @throws what the taker failed with */
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

/** The end that takes blocks, with a turn of the event loop after each; `take` throws to refuse all further ones. */
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
          // Unless something came in between, and nobody else has noticed.
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
