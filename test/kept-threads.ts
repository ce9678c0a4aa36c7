// The first tier starts thousands of threads that only answer calls, and Node needs 30 ms of CPU for each. Here such a thread, closed
// while it is idle, waits for the next owner instead of ending. The other tiers run without this: there each thread ends when closed.
import { once } from 'node:events'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import threads, { MessageChannel, type MessagePort, type Transferable, type WorkerOptions } from 'node:worker_threads'

/** The threads whose modules answer calls and remember nothing between them. */
const STATELESS = /\/(?:document-worker|hash-worker|signature-worker|verify-worker|view-worker|offload\/worker)\.[jt]s$/
/** Those that remember their connections alone, which end with the owner. An error that they answer leaves nothing behind. */
const CONNECTED = /\/range-worker\.[jt]s$/
const KEPT_SOCKETS = join(import.meta.dirname, 'kept-sockets.ts')
/** Kept in a process: what a test with several daemons closes at its end. */
const MAX_KEPT = 20

/** Ends those that are kept, and is there once they are: see `endKeptThreads` of the testkit. */
const end = Symbol.for('svc.test.endKeptThreads')
const own = globalThis as { [end]?: () => Promise<void> }

/** A thread serves another owner only with the same code, data, options and environment. */
function kindOf(file: string | URL, { workerData, ...options }: WorkerOptions): string | undefined {
  const data: Record<string, unknown> = workerData ?? {}
  // a file port of a test counts calls and injects faults: it has state.
  if (!(STATELESS.test(String(file)) || CONNECTED.test(String(file))) || data.filePort !== undefined) return undefined
  return JSON.stringify([String(file), data, options, process.env])
}

function withSockets(
  { workerData, execArgv, transferList = [], ...options }: WorkerOptions,
  port: MessagePort
): WorkerOptions {
  return {
    ...options,
    workerData: { ...workerData, keptPort: port },
    transferList: [...transferList, port],
    execArgv: [...(execArgv ?? process.execArgv), '--import', KEPT_SOCKETS]
  }
}

interface Message {
  readonly id?: number
  readonly op?: string
  readonly error?: unknown
  readonly progress?: unknown
  readonly begun?: true
}

if (own[end] === undefined) {
  const { Worker } = threads
  /** Those that were closed first come first. */
  const kept: KeptWorker[] = []

  class KeptWorker extends Worker {
    readonly kind: string | undefined
    /** Calls without an answer. */
    readonly #calls = new Map<number, string>()
    /** Sessions of the store's threads that were begun and neither finished nor dropped. */
    #sessions = 0
    #isFaulty = false
    #isClosing = false
    /** Closes the thread's connections, and answers. */
    readonly #sockets: MessagePort | undefined

    constructor(file: string | URL, given: WorkerOptions) {
      const sockets = CONNECTED.test(String(file)) ? new MessageChannel() : undefined
      super(file, sockets === undefined ? given : withSockets(given, sockets.port2))
      this.#sockets = sockets?.port1
      this.#sockets?.unref()
      this.kind = kindOf(file, given)
      if (this.kind !== undefined) this.#watch()
    }

    #watch(): void {
      this.on('message', ({ id, error, progress, begun }: Message) => {
        if (id === undefined || progress !== undefined || begun) return
        const op = this.#calls.get(id)
        this.#calls.delete(id)
        if (op === 'begin') this.#sessions++
        if (op === 'finish' || op === 'drop') this.#sessions--
        if (error !== undefined && this.#sockets === undefined) this.#isFaulty = true
      })
      const fail = (): void => {
        this.#isFaulty = true
        const at = kept.indexOf(this)
        if (at !== -1) kept.splice(at, 1)
      }
      for (const event of ['error', 'messageerror', 'exit']) this.on(event, fail)
    }

    override postMessage(message: Message, transfer?: readonly Transferable[]): void {
      super.postMessage(message, transfer)
      if (message.id !== undefined) this.#calls.set(message.id, message.op ?? '')
    }

    override async terminate(): Promise<number> {
      const isIdle = !this.#isFaulty && this.#calls.size === 0 && this.#sessions === 0
      if (this.kind === undefined || !isIdle) return super.terminate()
      if (this.#isClosing || kept.includes(this)) return 0
      this.#isClosing = true
      await this.#closeSockets()
      this.#isClosing = false
      // by name: without one, Node's own listeners that let messages through would go as well.
      for (const event of ['message', 'messageerror', 'error', 'exit', 'online']) this.removeAllListeners(event)
      this.#watch()
      this.unref()
      kept.push(this)
      if (kept.length > MAX_KEPT) await kept.shift()!.end()
      return 0
    }

    async #closeSockets(): Promise<void> {
      if (this.#sockets === undefined) return
      const closed = once(this.#sockets, 'message')
      this.#sockets.postMessage(undefined)
      await Promise.race([closed, once(this, 'exit')])
      this.#sockets.unref()
    }

    end(): Promise<number> {
      return super.terminate()
    }
  }

  threads.Worker = new Proxy(KeptWorker as typeof Worker, {
    construct: (target, [file, options = {}]: ConstructorParameters<typeof Worker>, asked) => {
      const kind = kindOf(file, options)
      const at = kind === undefined ? -1 : kept.findLastIndex((worker) => worker.kind === kind)
      return at === -1 ? Reflect.construct(target, [file, options], asked) : kept.splice(at, 1)[0]!
    }
  })
  own[end] = async () => {
    await Promise.all(kept.splice(0).map((worker) => worker.end()))
  }
  syncBuiltinESMExports()
}
