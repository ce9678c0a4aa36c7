import { type Clock, systemClock } from '@svc/internal-clock'
import type { Calls } from './protocol.ts'
import { WorkerThread, type WorkerThreadOptions } from './worker-thread.ts'

interface LimitedThreadOptions extends WorkerThreadOptions {
  /** The time of one call, without its wait for others and for the thread's start. */
  readonly limitMs: number
  /** The error of a call that took longer. */
  readonly late: () => Error
  readonly clock?: Pick<Clock, 'after'>
}

/**
 * A thread that reads documents of strangers: one call at a time. A call that takes longer than its limit ends with the
 * thread, whatever it is doing; the calls behind it get another one.
 */
export class LimitedThread<Of extends Calls<Of>> {
  readonly #options: LimitedThreadOptions
  #thread: WorkerThread<Of>
  #turn: Promise<unknown> = Promise.resolve()
  #isClosed = false

  constructor(options: LimitedThreadOptions) {
    this.#options = options
    this.#thread = new WorkerThread<Of>(options)
  }

  /** As {@link WorkerThread.call}. @throws also the options' `late` */
  call<Op extends keyof Of>(op: Op, request: Of[Op]['request']): Promise<Of[Op]['response']> {
    const answer = this.#turn.then(() => this.#call(op, request))
    this.#turn = answer.catch(() => undefined)
    return answer
  }

  /** Ends the thread for good, and rejects all calls. Idempotent. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#thread.close()
  }

  async #call<Op extends keyof Of>(op: Op, request: Of[Op]['request']): Promise<Of[Op]['response']> {
    const { limitMs, late, clock = systemClock } = this.#options
    let isLate = false
    let timer: { cancel(): void } | undefined
    const onLate = (): void => {
      isLate = true
      void this.#thread.close()
      if (!this.#isClosed) this.#thread = new WorkerThread<Of>(this.#options)
    }
    try {
      const answer = await this.#thread.call(op, request, { onBegun: () => (timer = clock.after(limitMs, onLate)) })
      if (isLate) throw late()
      return answer
    } catch (error) {
      throw isLate ? late() : error
    } finally {
      timer?.cancel()
    }
  }
}
