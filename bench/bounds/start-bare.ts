import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { end } from '../harness/daemon.ts'
import { cpuSecondsOf } from '../harness/process-facts.ts'

const SERVER = new URL('./bare-server.ts', import.meta.url).pathname

/** A server that does nothing but what cannot be left out (see `bare-server.ts`), as a process of its own. */
export class BareServer {
  readonly socketPath: string
  readonly #process: ChildProcess

  private constructor(socketPath: string, child: ChildProcess) {
    this.socketPath = socketPath
    this.#process = child
  }

  /** Its socket is in `folder`. */
  static async start(folder: string, file: string, mode: 'read' | 'push' | 'answer'): Promise<BareServer> {
    const socketPath = join(folder, `${mode}.sock`)
    const child = spawn(process.execPath, [SERVER, socketPath, file, mode], {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc']
    })
    await Promise.race([
      once(child, 'message'),
      once(child, 'exit').then(() => Promise.reject(new Error('the bare server did not start')))
    ])
    return new BareServer(socketPath, child)
  }

  cpuSeconds(): number {
    return cpuSecondsOf(this.#process.pid!)
  }

  stop(): Promise<void> {
    return end(this.#process)
  }
}
