import { Session } from 'node:inspector'
import type { Worker } from 'node:worker_threads'

/** Ends the threads that the first tier keeps for later tests: for tests that count what a process holds. */
export async function endKeptThreads(): Promise<void> {
  await (globalThis as { [key: symbol]: (() => Promise<void>) | undefined })[Symbol.for('svc.test.endKeptThreads')]?.()
}

/** The worker threads that this process starts from now on, so that a test can make them fail. */
export class StartedThreads {
  readonly #workers: Worker[] = []
  readonly #noted = (worker: Worker): void => void this.#workers.push(worker)

  constructor() {
    process.on('worker', this.#noted)
  }

  /** How often a thread of this name was started. */
  count(name: string): number {
    return this.#named(name).length
  }

  /** Ends the newest thread of this name, as an uncaught error would. */
  async kill(name: string): Promise<void> {
    await this.#newest(name).terminate()
  }

  /** Makes the newest thread of this name run an endless loop, which nothing in the thread can end. */
  async hang(name: string): Promise<void> {
    const worker = this.#newest(name)
    // the inspector counts `workerId` by itself; only the title has the thread's id.
    const title = `[worker ${worker.threadId}] `
    const session = new Session()
    session.connect()
    const attached = new Promise<string>((resolve) =>
      // the type does not list events of this domain
      session.on('NodeWorker.attachedToWorker' as 'inspectorNotification', (message) => {
        const { sessionId, workerInfo } = message.params as unknown as AttachedToWorker
        if (workerInfo.title.startsWith(title)) resolve(sessionId)
      })
    )
    session.post('NodeWorker.enable', { waitForDebuggerOnStart: false })
    const message = JSON.stringify({ id: 1, method: 'Runtime.evaluate', params: { expression: 'for (;;);' } })
    session.post('NodeWorker.sendMessageToWorker', { message, sessionId: await attached })
    worker.once('exit', () => session.disconnect())
  }

  stop(): void {
    process.off('worker', this.#noted)
  }

  #named(name: string): readonly Worker[] {
    return this.#workers.filter(({ threadName }) => threadName === name)
  }

  #newest(name: string): Worker {
    const worker = this.#named(name).at(-1)
    if (worker === undefined) throw new Error(`no thread ${name} was started`)
    return worker
  }
}

interface AttachedToWorker {
  readonly sessionId: string
  readonly workerInfo: { readonly title: string }
}
