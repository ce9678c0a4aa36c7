import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { type Machine, on } from './network.ts'

const OURS = fileURLToPath(new URL('./companion-process.ts', import.meta.url))
const LIBTORRENT = fileURLToPath(new URL('../../packages/swarm/test/interop/libtorrent_peer.py', import.meta.url))

type Message = Readonly<Record<string, unknown>>

/** A non-daemon process in a namespace of its own: exchanges JSON lines over stdio and exits when its stdin closes. */
export class Companion {
  readonly #child: ChildProcess
  readonly #inbox: Message[] = []
  readonly #gone: Promise<unknown>
  #wake: () => void = () => undefined

  private constructor(machine: Machine, command: readonly string[]) {
    const [program = '', ...args] = [...on(machine), ...command]
    this.#child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] })
    this.#gone = new Promise((resolve) => this.#child.once('exit', resolve))
    createInterface({ input: this.#child.stdout! }).on('line', (line) => {
      this.#inbox.push(JSON.parse(line) as Message)
      this.#wake()
    })
  }

  static async start(machine: Machine, ...args: readonly string[]): Promise<Companion> {
    const companion = new Companion(machine, [process.execPath, '--conditions=svc-source', OURS, ...args])
    await companion.next((message) => message.ready === true)
    return companion
  }

  /** libtorrent tuned for a LAN, for a fair comparison: TCP only, unlimited upload slots, default connection limits. */
  static async libtorrent(machine: Machine): Promise<Companion> {
    const settings = { unchoke_slots_limit: -1, mixed_mode_algorithm: 0, rate_limit_ip_overhead: false }
    const options = JSON.stringify({ listen: '0.0.0.0:6881', settings })
    const companion = new Companion(machine, ['/usr/bin/python3', LIBTORRENT, options])
    await companion.next(({ event }) => event === 'ready')
    return companion
  }

  get pid(): number {
    return this.#child.pid!
  }

  send(message: object): void {
    this.#child.stdin!.write(`${JSON.stringify(message)}\n`)
  }

  async next(is: (message: Message) => boolean): Promise<Message> {
    for (;;) {
      const at = this.#inbox.findIndex(is)
      if (at >= 0) return this.#inbox.splice(at, 1)[0]!
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  /** SIGKILL, to simulate a crash. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#gone
  }

  async stop(): Promise<void> {
    this.#child.stdin!.end()
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), 5_000)
    await this.#gone
    clearTimeout(timer)
  }
}
