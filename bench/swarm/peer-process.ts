import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const here = path.dirname(fileURLToPath(import.meta.url))
const python = path.join(here, '../../packages/swarm/test/interop/libtorrent_peer.py')
/**
 * libtorrent's own preset for fast seeds (`high_performance_seed`), and on top what made it faster still on two cores: four threads that
 * read and write instead of eight, two that hash instead of one. Without the preset it sends next to nothing ahead in its first
 * second: `lt1` is that, for comparison with earlier figures.
 */
const TUNED = { fast: true, settings: { aio_threads: 4, hashing_threads: 2 } }
const DEFAULT_SEND = {
  settings: {
    send_buffer_watermark: 4 * 1024 * 1024,
    max_out_request_queue: 1500,
    aio_threads: 4,
    hashing_threads: 2,
    file_pool_size: 100,
    unchoke_slots_limit: -1,
    mixed_mode_algorithm: 0
  }
}

/**
 * libtorrent, our engine, webtorrent, or what no engine on Node can leave out: `bare` between two of them, with the flat hash
 * `flat`, and `blocks` and `asks` towards others, as a seed and as a leech.
 */
export type Kind = 'lt' | 'lt1' | 'us' | 'wt' | 'bare' | 'flat' | 'blocks' | 'asks'
const PROGRAMS = {
  us: ['engine-peer.ts'],
  wt: ['webtorrent-peer.ts'],
  bare: ['../bounds/bare-peer.ts'],
  flat: ['../bounds/bare-peer.ts', 'flat'],
  blocks: ['../bounds/blocks-peer.ts'],
  asks: ['../bounds/asking-peer.ts']
} as const
type Message = Record<string, unknown> & { event: string }

/** A seed or leech in a separate process, controlled by JSON lines on its stdin. */
export class Peer {
  readonly #child: ChildProcess
  readonly #seen: Message[] = []
  #wake: () => void = () => undefined
  port = 0

  private constructor(child: ChildProcess, kind: Kind) {
    this.#child = child
    createInterface({ input: child.stdout! }).on('line', (line) => {
      if (process.env.BENCH_VERBOSE) console.error(line)
      const message = JSON.parse(line) as Message
      if (message.event === 'error') throw new Error(String(message.message))
      this.#seen.push(message)
      this.#wake()
    })
    child.on('exit', (code, signal) => {
      if (code !== 0) throw new Error(`a peer (${kind}) exited with ${code ?? signal}`)
    })
  }

  /** `defaults`: libtorrent's default settings, with uTP and encryption. */
  static async start(kind: Kind, { defaults = false } = {}): Promise<Peer> {
    const libtorrent = defaults ? { defaults, blocks: true } : kind === 'lt1' ? DEFAULT_SEND : TUNED
    const child =
      kind === 'lt' || kind === 'lt1'
        ? spawn('/usr/bin/python3', [python, JSON.stringify(libtorrent)], { stdio: ['pipe', 'pipe', 'inherit'] })
        : runPlain(PROGRAMS[kind])
    const peer = new Peer(child, kind)
    peer.port = (await peer.wait('ready')).port as number
    return peer
  }

  send(message: object): void {
    this.#child.stdin!.write(`${JSON.stringify(message)}\n`)
  }

  async wait(event: string): Promise<Message> {
    for (;;) {
      const at = this.#seen.findIndex((message) => message.event === event)
      if (at >= 0) return this.#seen.splice(at, 1)[0]!
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  async usage(): Promise<{ cpuSeconds: number; maxRssBytes: number; loopP99Ms?: number }> {
    this.send({ cmd: 'usage' })
    return (await this.wait('usage')) as unknown as { cpuSeconds: number; maxRssBytes: number }
  }

  async stop(): Promise<void> {
    const gone = new Promise((resolve) => this.#child.once('exit', resolve))
    this.send({ cmd: 'quit' })
    this.#child.stdin!.end()
    await gone
  }
}

/** Runs a program as plain JavaScript: a process that reads types itself holds 20 MiB for that. */
function runPlain([program, ...args]: readonly [string, ...string[]]): ChildProcess {
  const file = path.join(here, program)
  const code = stripTypeScriptTypes(readFileSync(file, 'utf8'))
  return spawn(process.execPath, ['--input-type=module', '--eval', code, ...args], {
    // what it imports is found from here
    cwd: path.dirname(file),
    stdio: ['pipe', 'pipe', 'inherit']
  })
}
