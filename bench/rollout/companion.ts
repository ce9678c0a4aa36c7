import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { type Machine, on } from './network.ts'

const OURS = fileURLToPath(new URL('./companion-process.ts', import.meta.url))
const LIBTORRENT = fileURLToPath(new URL('../../packages/swarm/test/interop/libtorrent_peer.py', import.meta.url))

type Message = Readonly<Record<string, unknown>>

/** A program beside the daemons, on a machine of its own: speaks JSON lines both ways, ends with its standard input. */
export class Companion {
  readonly #child: ChildProcess
  readonly #seen: Message[] = []
  readonly #gone: Promise<unknown>
  #wake: () => void = () => undefined

  private constructor(machine: Machine, command: readonly string[]) {
    const [program = '', ...args] = [...on(machine), ...command]
    this.#child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] })
    this.#gone = new Promise((resolve) => this.#child.once('exit', resolve))
    createInterface({ input: this.#child.stdout! }).on('line', (line) => {
      this.#seen.push(JSON.parse(line) as Message)
      this.#wake()
    })
  }

  static async start(machine: Machine, ...words: readonly string[]): Promise<Companion> {
    const companion = new Companion(machine, [process.execPath, '--conditions=svc-source', OURS, ...words])
    await companion.next((message) => message.ready === true)
    return companion
  }

  /** libtorrent with its defaults for connections, TCP alone, and no limit to slots: what it is at its best in such a network. */
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
      const at = this.#seen.findIndex(is)
      if (at >= 0) return this.#seen.splice(at, 1)[0]!
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  /** Ends at once. */
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
