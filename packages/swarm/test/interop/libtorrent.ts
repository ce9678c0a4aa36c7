import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const PYTHON = '/usr/bin/python3'
const script = fileURLToPath(new URL('./libtorrent_peer.py', import.meta.url))

/** Debian's libtorrent is there. With SVC_REQUIRE_INTEROP=1 tests run regardless, and fail without it. */
export const hasLibtorrent =
  process.env.SVC_REQUIRE_INTEROP === '1' ||
  spawnSync(PYTHON, ['-c', 'import libtorrent'], { stdio: 'ignore' }).status === 0

export interface LtEvent {
  readonly event: string
  readonly id?: string
  readonly [key: string]: unknown
}

/** A libtorrent session in a process of its own. */
export class Libtorrent {
  readonly #child: ChildProcess
  readonly #events: LtEvent[] = []
  readonly #waiting = new Set<() => void>()
  #exited = false
  port = 0

  private constructor(child: ChildProcess) {
    this.#child = child
    createInterface({ input: child.stdout! }).on('line', (line) => {
      const event = JSON.parse(line) as LtEvent
      if (event.event === 'log') return void console.log(event.message)
      this.#events.push(event)
      for (const wake of this.#waiting) wake()
    })
    child.once('exit', () => {
      this.#exited = true
      for (const wake of this.#waiting) wake()
    })
  }

  static async start(options: object = {}): Promise<Libtorrent> {
    const child = spawn(PYTHON, [script, JSON.stringify({ blocks: true, ...options })], {
      stdio: ['pipe', 'pipe', 'inherit']
    })
    const session = new Libtorrent(child)
    session.port = (await session.wait('ready')).port as number
    return session
  }

  send(command: object): void {
    this.#child.stdin!.write(`${JSON.stringify(command)}\n`)
  }

  /** The torrent is complete, and its files are written: `finished` alone may come before the last blocks are. */
  async written(id: string): Promise<void> {
    await this.wait('finished', id)
    this.send({ cmd: 'flush', id })
    await this.wait('flushed', id)
  }

  /** The next (or an earlier, unread) event of that kind. */
  async wait(event: string, id?: string): Promise<LtEvent> {
    for (;;) {
      const at = this.#events.findIndex((entry) => entry.event === event && (id === undefined || entry.id === id))
      if (at >= 0) return this.#events.splice(at, 1)[0]!
      if (this.#exited) throw new Error(`libtorrent ended before ${event}`)
      const failed = this.#events.find((entry) => entry.event === 'error' && (id === undefined || entry.id === id))
      if (failed !== undefined) throw new Error(String(failed.message))
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          this.#waiting.delete(wake)
          resolve()
        }
        this.#waiting.add(wake)
      })
    }
  }

  seen(event: string): readonly LtEvent[] {
    return this.#events.filter((entry) => entry.event === event)
  }

  async ask(command: object, event: string): Promise<LtEvent> {
    this.send(command)
    return this.wait(event)
  }

  async stop(): Promise<void> {
    if (this.#exited) return
    const gone = new Promise((resolve) => this.#child.once('exit', resolve))
    this.send({ cmd: 'quit' })
    this.#child.stdin!.end()
    await gone
  }
}
