import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { haveLibtorrent } from './v1-peer.ts'

export { haveLibtorrent }

const SCRIPT = fileURLToPath(new URL('./v2_peer.py', import.meta.url))

export interface LibtorrentFile {
  /** 64 hex characters. */
  readonly infohash: string
  readonly name: string
  readonly pieceLength: number
  /** Base64, by root in hex. */
  readonly layers: Readonly<Record<string, string>>
  readonly files: readonly string[]
  readonly webseeds: readonly string[]
}

export interface LibtorrentStatus {
  readonly seeding: boolean
  readonly done: number
  readonly uploaded: number
  readonly downloaded: number
  readonly peers: number
  readonly state: string
  readonly error: string | null
}

export interface AddOptions {
  readonly torrent?: string
  readonly magnet?: string
  readonly save: string
  readonly seed?: boolean
  readonly peers?: readonly string[]
  /** Replaces the webseeds of the torrent or magnet. */
  readonly webseeds?: readonly string[]
}

/** A libtorrent session in its own process: a BitTorrent v2 peer on 127.0.0.1. */
export class Libtorrent {
  readonly #child: ChildProcess
  readonly #answers = new Map<number, PromiseWithResolvers<Record<string, unknown>>>()
  #next = 0
  #port = 0

  private constructor(child: ChildProcess) {
    this.#child = child
    createInterface({ input: child.stdout! }).on('line', (line) => {
      const { n, ...answer } = JSON.parse(line) as { readonly n: number; readonly failed?: string }
      const waiting = this.#answers.get(n)
      this.#answers.delete(n)
      if (answer.failed !== undefined) waiting?.reject(new Error(answer.failed))
      else waiting?.resolve(answer)
    })
    child.once('exit', (code) => {
      for (const { reject } of this.#answers.values()) reject(new Error(`libtorrent ended with ${code}`))
    })
  }

  /** @param settings libtorrent's own, e.g. `upload_rate_limit` */
  static async start(settings: Readonly<Record<string, unknown>> = {}): Promise<Libtorrent> {
    const child = spawn('/usr/bin/python3', [SCRIPT, JSON.stringify(settings)], { stdio: ['pipe', 'pipe', 'inherit'] })
    const session = new Libtorrent(child)
    session.#port = (await session.#wait()).port as number
    return session
  }

  get address(): string {
    return `127.0.0.1:${this.#port}`
  }

  /** A v2-only torrent of a folder, made by libtorrent. */
  make(path: string, pieceLength: number, out: string): Promise<LibtorrentFile> {
    return this.#ask({ cmd: 'make', path, piece: pieceLength, out }) as Promise<unknown> as Promise<LibtorrentFile>
  }

  /** What libtorrent reads from a torrent file; rejects if libtorrent refuses it. */
  inspect(torrent: string): Promise<LibtorrentFile> {
    return this.#ask({ cmd: 'inspect', torrent }) as Promise<unknown> as Promise<LibtorrentFile>
  }

  async add(options: AddOptions): Promise<void> {
    await this.#ask({ cmd: 'add', ...options })
  }

  async addDhtNode(port: number): Promise<void> {
    await this.#ask({ cmd: 'add-dht-node', port })
  }

  status(): Promise<LibtorrentStatus> {
    return this.#ask({ cmd: 'status' }) as Promise<unknown> as Promise<LibtorrentStatus>
  }

  /** Polls the status until it is as required. */
  async until(what: (status: LibtorrentStatus) => boolean, timeoutMs = 60_000): Promise<LibtorrentStatus> {
    const end = performance.now() + timeoutMs
    for (;;) {
      const status = await this.status()
      if (what(status)) return status
      if (performance.now() > end) throw new Error(`libtorrent did not get there in time: ${JSON.stringify(status)}`)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null) return
    const gone = new Promise((resolve) => this.#child.once('exit', resolve))
    this.#child.stdin!.end()
    await gone
  }

  #ask(command: object): Promise<Record<string, unknown>> {
    this.#next += 1
    const n = this.#next
    const answer = this.#wait(n)
    this.#child.stdin!.write(`${JSON.stringify({ ...command, n })}\n`)
    return answer
  }

  #wait(n = 0): Promise<Record<string, unknown>> {
    const waiting = Promise.withResolvers<Record<string, unknown>>()
    this.#answers.set(n, waiting)
    return waiting.promise
  }
}
