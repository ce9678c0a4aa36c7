import { Worker } from 'node:worker_threads'
import { ClassifyError, type ClassifyErrorCode, type ClassifyErrorDetails } from '@svc/classify'
import type { OffloadReply, OffloadResults, OffloadTask } from './task.ts'

interface Waiting {
  readonly resolve: (result: never) => void
  readonly reject: (error: Error) => void
}

/** One thread, started when it is first needed; tasks run one after the other, which also bounds their memory. */
export class Offload {
  #worker: Worker | undefined
  #closed = false
  #next = 0
  readonly #waiting = new Map<number, Waiting>()

  /** `transfer` gives buffers away instead of copying them. @throws ClassifyError from `plan` and `recognise`; Error when the thread dies or is closed. */
  run<K extends OffloadTask['kind']>(
    task: Extract<OffloadTask, { kind: K }>,
    transfer: readonly ArrayBuffer[] = []
  ): Promise<OffloadResults[K]> {
    if (this.#closed) return Promise.reject(new Error('the offload thread is closed'))
    const worker = (this.#worker ??= this.#start())
    const id = this.#next++
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve: resolve as (result: never) => void, reject })
      worker.ref()
      worker.postMessage({ id, task }, transfer)
    })
  }

  async close(): Promise<void> {
    this.#closed = true
    const worker = this.#worker
    this.#worker = undefined
    await worker?.terminate()
    this.#fail(new Error('the offload thread is closed'))
  }

  #start(): Worker {
    const file = `./worker${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`
    const worker = new Worker(new URL(file, import.meta.url), { name: 'svcd-offload' })
    worker.on('message', (reply: OffloadReply) => {
      const waiting = this.#waiting.get(reply.id)
      this.#waiting.delete(reply.id)
      if (this.#waiting.size === 0) worker.unref()
      if ('result' in reply) waiting?.resolve(reply.result as never)
      else waiting?.reject(errorOf(reply.failure))
    })
    const died = (error: Error): void => {
      if (this.#worker === worker) this.#worker = undefined
      this.#fail(error)
    }
    worker.on('error', died)
    worker.on('exit', () => died(new Error('the offload thread ended')))
    worker.unref()
    return worker
  }

  #fail(error: Error): void {
    for (const waiting of this.#waiting.values()) waiting.reject(error)
    this.#waiting.clear()
  }
}

const errorOf = ({ code, message, details, stack }: Extract<OffloadReply, { failure: unknown }>['failure']): Error =>
  code === undefined
    ? Object.assign(new Error(message), { stack })
    : new ClassifyError(code as ClassifyErrorCode, message, details as ClassifyErrorDetails)
