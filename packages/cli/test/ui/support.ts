import {
  type ClientRequest,
  request as httpRequest,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders
} from 'node:http'
import { connect } from 'node:net'
import { Readable } from 'node:stream'
import type { Bridge, BridgeOptions } from '@svc/internal-bridge'
import type { Clock } from '@svc/internal-clock'
import { until } from '@svc/testkit/until'
import type { VirtualClock } from '@svc/testkit/virtual-clock'
import { onTestFinished } from 'vitest'
import { openSession, type Session } from '../../src/session.ts'
import { startBridge } from '../../src/ui/page-bridge.ts'
import { Captured } from '../support.ts'

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

export interface Asked {
  readonly method?: string
  readonly headers?: OutgoingHttpHeaders
  /** Sent unchanged. */
  readonly body?: string
}

/** A bridge with a page of two files, and a browser that was let in. */
export interface OpenBridge {
  readonly bridge: Bridge
  readonly session: Session
  readonly origin: string
  /** The path of the page, which ends with `/`. */
  readonly page: string
  readonly cookie: string
  /** From anywhere: only the headers that are given, and the right `Host` unless one is given. */
  ask(path: string, asked?: Asked): Promise<Answer>
  /** As the page asks, below its path. */
  fetch(path: string, asked?: { readonly method?: string; readonly body?: unknown }): Promise<Answer>
}

const PAGE = new Map([
  ['index.html', { type: 'text/html; charset=utf-8', bytes: Buffer.from('<!doctype html><title>models</title>') }],
  ['app.js', { type: 'text/javascript; charset=utf-8', bytes: Buffer.from('export {}') }]
])

/** Where programs reach an origin; names below `localhost` are not known to every system. */
function reached(origin: string): { readonly host: string; readonly port: number } {
  const { hostname, port } = new URL(origin)
  return { host: hostname.endsWith('.localhost') ? '127.0.0.1' : hostname, port: Number(port) }
}

export function ask(origin: string, path: string, { method = 'GET', headers = {}, body }: Asked = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const { host } = new URL(origin)
    const where = { ...reached(origin), path, method, headers: { host, ...headers }, agent: false }
    const request = httpRequest(where, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      response.on('end', () => resolve({ status: response.statusCode!, headers: response.headers, body: text }))
    })
    request.on('error', reject).end(body)
  })
}

/** Writes bytes to the port, and reads until the other side closes. */
export function raw(origin: string, bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    const socket = connect(reached(origin), () => socket.write(bytes))
    socket.setEncoding('latin1').on('data', (chunk: string) => (text += chunk))
    socket.on('error', reject).on('close', () => resolve(text))
  })
}

export const json = (body: unknown): Pick<Asked, 'body'> & { readonly headers: OutgoingHttpHeaders } => ({
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body)
})

export async function openBridge(
  socketPath: string,
  more: Partial<BridgeOptions> & {
    readonly env?: Record<string, string>
    readonly clock?: Clock
    readonly version?: string
  } = {}
): Promise<OpenBridge> {
  const { env = {}, clock, version = '1.2.3', ...options } = more
  const output = new Captured('utf8')
  const terminal = {
    stdin: Readable.from([]),
    stdout: output.output,
    stderr: output.output,
    cwd: '/',
    env,
    ...(clock && { clock })
  }
  const session = openSession({ socket: socketPath }, version, terminal, new AbortController().signal)
  // as on a system that knows no names below `localhost`
  const bridge = await startBridge(session, { files: PAGE, resolve: async () => [], ...options })
  onTestFinished(async () => {
    await bridge.close()
    session.client.close()
  })
  const { origin } = new URL(bridge.newLink())
  const { cookie, page } = await enter(bridge)
  return {
    bridge,
    session,
    origin,
    page,
    cookie,
    ask: (path, asked) => ask(origin, path, asked),
    fetch: (path, { method = 'GET', body } = {}) => {
      const sent = body === undefined ? { headers: {} } : json(body)
      const own = { cookie, 'sec-fetch-site': 'same-origin', ...(method !== 'GET' && { origin }) }
      return ask(origin, `${page}${path}`, { ...sent, method, headers: { ...sent.headers, ...own } })
    }
  }
}

/** Redeems a link, as the script of the entry does. */
export async function enter(bridge: Bridge, link = bridge.newLink()): Promise<{ cookie: string; page: string }> {
  const { hash, origin } = new URL(link)
  const token = hash.slice(1)
  const { headers, body } = json({ token })
  const answer = await ask(origin, '/session', {
    method: 'POST',
    headers: { ...headers, origin },
    ...(body !== undefined && { body })
  })
  if (answer.status !== 200) throw new Error(`the link was refused: ${answer.status}`)
  return { cookie: answer.headers['set-cookie']![0]!.split(';')[0]!, page: JSON.parse(answer.body).path }
}

export interface LiveEvent {
  readonly name: string
  readonly data: unknown
}

/** Collects the events that an open page gets. */
export class Listener {
  readonly #request: ClientRequest
  readonly #events: LiveEvent[] = []
  readonly #clock: VirtualClock
  readonly ended: Promise<void>

  constructor({ origin, page, cookie }: OpenBridge, clock: VirtualClock) {
    this.#clock = clock
    const headers = { cookie, host: new URL(origin).host, 'sec-fetch-site': 'same-origin', accept: 'text/event-stream' }
    this.#request = httpRequest({ ...reached(origin), path: `${page}events`, headers, agent: false })
    this.ended = new Promise((resolve) => this.#request.on('close', resolve).on('error', resolve))
    let text = ''
    this.#request.on('response', (response) => {
      response.setEncoding('utf8').on('data', (chunk: string) => {
        const parts = `${text}${chunk}`.split('\n\n')
        text = parts.pop()!
        for (const part of parts) {
          const [, name, data] = /^event: (\w+)\ndata: (.*)$/.exec(part) ?? []
          if (name !== undefined) this.#events.push({ name, data: JSON.parse(data!) })
        }
      })
    })
    this.#request.end()
    onTestFinished(() => void this.#request.destroy())
  }

  /** The next event of this kind that fits; drops earlier ones. Time passes meanwhile. */
  async next<T>(name: string, fits: (data: T) => boolean = () => true): Promise<T> {
    const find = (): number => this.#events.findIndex((event) => event.name === name && fits(event.data as T))
    await until(
      () => find() >= 0,
      async () => void this.#clock.step()
    )
    return this.#events.splice(0, find() + 1).at(-1)!.data as T
  }

  /** The names of the events that `next` has not returned yet. */
  get names(): readonly string[] {
    return this.#events.map(({ name }) => name)
  }

  leave(): void {
    this.#request.destroy()
  }
}
