import { randomBytes } from 'node:crypto'
import { closeSync, ftruncateSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { RangeThreads } from '../src/range-threads.ts'

/** The file that is asked for, and the part of it. */
export const SIZE_BYTES = 300_000
export const START = 100_000
export const END = 200_000
export const CONTENT: Buffer = randomBytes(SIZE_BYTES)
export const BODY: Buffer = CONTENT.subarray(START, END)
/** What a good server says before the bytes. */
export const headOf = (more = '', length = END - START): string =>
  `HTTP/1.1 206 Partial Content\r\nContent-Range: bytes ${START}-${START + length - 1}/${SIZE_BYTES}\r\n` +
  `Content-Length: ${length}\r\n${more}\r\n`
export const GOOD: Buffer = Buffer.concat([Buffer.from(headOf()), BODY])

/** What a server does with a connection on which the request has come. */
export type Answer = (socket: Socket) => void

/** What came of one range: the thread's reply, or the code of its error. */
export interface Outcome {
  readonly reply: string
  /** Up to where bytes were reported as written. */
  readonly writtenTo: number
  /** They are those of the file, as the server has it. */
  readonly isRight: boolean
  /** Outside of the range, and beyond what was reported, nothing was written but in the blocks under way. */
  readonly isOutsideUntouched: boolean
}

const SENTINEL = 0xa5

/** A server on loopback that answers as it is told to, and one thread that asks it. */
export class HostileRanges {
  readonly #folder = mkdtempSync(join(tmpdir(), 'svc-hub-ranges-'))
  readonly #fd: number
  readonly #sockets = new Set<Socket>()
  readonly #threads = new RangeThreads(0, undefined, 1)
  #answer: Answer = (socket) => void socket.write(GOOD)
  readonly #server = createServer((socket) => {
    this.#sockets.add(socket)
    socket.on('error', () => undefined).on('close', () => this.#sockets.delete(socket))
    let held = ''
    socket.on('data', (bytes) => {
      held += bytes.toString('latin1')
      for (let end = held.indexOf('\r\n\r\n'); end >= 0; end = held.indexOf('\r\n\r\n')) {
        held = held.slice(end + 4)
        this.#answer(socket)
      }
    })
  })

  static async start(): Promise<HostileRanges> {
    const ranges = new HostileRanges()
    await new Promise<void>((resolve) => ranges.#server.listen(0, '127.0.0.1', resolve))
    return ranges
  }

  private constructor() {
    this.#fd = openSync(join(this.#folder, 'file'), 'w+')
  }

  /** Asks for the range of a server that answers so. */
  async ask(answer: Answer, { stallMs = 30_000, slowMs = 60_000 } = {}): Promise<Outcome> {
    this.#answer = answer
    ftruncateSync(this.#fd, 0)
    writeSync(this.#fd, Buffer.alloc(SIZE_BYTES, SENTINEL), 0, SIZE_BYTES, 0)
    const { port } = this.#server.address() as AddressInfo
    let writtenTo = START
    const range = { start: START, end: END, sizeBytes: SIZE_BYTES, policy: 'owner' as const }
    const job = {
      ...range,
      url: `http://127.0.0.1:${port}/file`,
      headers: {},
      fd: this.#fd,
      connectMs: 30_000,
      stallMs,
      slowMs
    }
    const reply = await this.#threads
      .fetch(job, new AbortController().signal, (progress) => {
        if ('start' in progress) {
          if (progress.start !== writtenTo) throw new Error(`a part from ${progress.start} after ${writtenTo}`)
          writtenTo = progress.end
        }
      })
      .catch(({ code }: { readonly code?: string }) => code ?? 'no code')
    const now = Buffer.alloc(SIZE_BYTES)
    readSync(this.#fd, now, 0, SIZE_BYTES, 0)
    const untouched = (start: number, end: number): boolean =>
      now.subarray(start, end).every((byte) => byte === SENTINEL)
    return {
      reply,
      writtenTo,
      isRight: now.subarray(START, writtenTo).equals(CONTENT.subarray(START, writtenTo)),
      isOutsideUntouched: untouched(0, START) && untouched(END, SIZE_BYTES)
    }
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
    await this.#threads.close()
    closeSync(this.#fd)
    rmSync(this.#folder, { recursive: true })
  }
}
