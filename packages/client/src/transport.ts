import { lstatSync } from 'node:fs'
import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http'
import { dirname } from 'node:path'
import { ClientError } from './errors.ts'
import type { Method } from './protocol/paths.ts'
import { socketFolderProblem } from './protocol/socket-path.ts'

// As an ES module, node:http evaluates all its lazy exports, among them a WebSocket client: a quarter of a short
// command's run time.
const { Agent, request: httpRequest } = process.getBuiltinModule('node:http')

/** Limit of a JSON response; the longest one is the plan for a hub repository with 100,000 files. */
const MAX_JSON_BYTES = 64 * 1024 * 1024

export interface TransportRequest {
  readonly method: Method
  /** Path with query, already encoded. */
  readonly path: string
  readonly body?: unknown
  readonly headers?: OutgoingHttpHeaders
  readonly signal?: AbortSignal | undefined
  /** Longest wait for the head of the response; 0: no limit. */
  readonly timeoutMs: number
}

/**
 * HTTP/1.1 over the daemon's Unix socket. GET and HEAD share kept-alive connections, and are repeated once if an idle
 * one was just being closed. Requests that change something have their own connection and are never repeated. @throws
 * ClientError `E_UNREACHABLE`, `E_UNSAFE_SOCKET`, `E_NO_ANSWER`, `E_BAD_RESPONSE`, the daemon's codes; the signal's
 * reason on abort
 */
export class SocketTransport {
  readonly socketPath: string
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 32 })

  readonly #folderOwner: number | undefined

  /** `folderOwner`: the user who must own the socket's folder, for a default path; undefined: not checked. */
  constructor(socketPath: string, folderOwner?: number) {
    this.socketPath = socketPath
    this.#folderOwner = folderOwner
  }

  close(): void {
    this.#agent.destroy()
  }

  /** Sends a request, and returns the response when its head has arrived. A status of 400 or more is thrown. */
  async send(exchange: TransportRequest): Promise<IncomingMessage> {
    const response = await this.#sendOnce(exchange, true)
    const status = response.statusCode ?? 0
    if (status >= 200 && status < 300) return response
    throw await this.#refusal(response, status, exchange)
  }

  /** Sends a request, and parses the JSON object of a successful response. */
  async json<T>(exchange: TransportRequest): Promise<T> {
    const response = await this.send(exchange)
    return this.#guard(exchange, async () => parseObject(await readText(response), response.statusCode ?? 0) as T)
  }

  #sendOnce(exchange: TransportRequest, mayRepeat: boolean): Promise<IncomingMessage> {
    const { method, path, body, signal, timeoutMs } = exchange
    if (signal?.aborted === true) return Promise.reject(signal.reason)
    const unsafe = this.#folderOwner === undefined ? undefined : unsafeFolder(this.socketPath, this.#folderOwner)
    if (unsafe !== undefined) return Promise.reject(unsafe)
    const payload = body === undefined ? undefined : Buffer.from(JSON.stringify(body))
    return new Promise((resolve, reject) => {
      const request = httpRequest({
        socketPath: this.socketPath,
        method,
        path,
        agent: isRead(method) ? this.#agent : false,
        headers: {
          ...exchange.headers,
          host: 'svc',
          ...(payload !== undefined && { 'content-type': 'application/json', 'content-length': payload.length })
        },
        ...(signal !== undefined && { signal })
      })
      let answered = false
      request.on('response', (response) => {
        answered = true
        // from here on the reader may be the reason for silence.
        request.setTimeout(0)
        resolve(response)
      })
      request.on('error', (error: NodeJS.ErrnoException) => {
        if (signal?.aborted === true) reject(signal.reason)
        else if (mayRepeat && !answered && isRead(method) && request.reusedSocket && error.code === 'ECONNRESET') {
          this.#sendOnce(exchange, false).then(resolve, reject)
        } else reject(error instanceof ClientError ? error : this.#unreachable(error))
      })
      if (timeoutMs > 0) {
        request.setTimeout(timeoutMs, () => {
          const waited = `the daemon did not answer within ${Math.ceil(timeoutMs / 1000)} s`
          request.destroy(new ClientError('E_NO_ANSWER', waited))
        })
      }
      request.end(payload)
    })
  }

  async #refusal(response: IncomingMessage, status: number, exchange: TransportRequest): Promise<Error> {
    if (exchange.method === 'HEAD') {
      response.resume()
      const code = status === 404 ? 'E_NOT_FOUND' : status === 400 ? 'E_BAD_REQUEST' : 'E_BAD_RESPONSE'
      return new ClientError(code, `the daemon answers ${status} to HEAD ${exchange.path}`, { status })
    }
    return this.#guard(exchange, async () => {
      const envelope = parseObject(await readText(response), status)
      const { error } = envelope as { error?: { code?: unknown; message?: unknown; candidates?: unknown } }
      if (typeof error?.code !== 'string' || typeof error.message !== 'string') return badResponse(status)
      const candidates = Array.isArray(error.candidates)
        ? error.candidates.filter((text): text is string => typeof text === 'string')
        : undefined
      return new ClientError(error.code, error.message, { status, candidates })
    })
  }

  /** Converts errors while a body is read: the abort's reason, our own errors, or a broken connection. */
  async #guard<T>(exchange: TransportRequest, read: () => Promise<T>): Promise<T> {
    try {
      return await read()
    } catch (error) {
      if (exchange.signal?.aborted === true) throw exchange.signal.reason
      throw error instanceof ClientError ? error : this.#unreachable(error as NodeJS.ErrnoException)
    }
  }

  #unreachable(cause: NodeJS.ErrnoException): ClientError {
    return new ClientError('E_UNREACHABLE', unreachableMessage(cause.code, this.socketPath), { cause })
  }
}

/**
 * Checked before each request: a daemon in somebody else's folder must never receive one. An absent folder is left for
 * the connection to report.
 */
function unsafeFolder(socketPath: string, user: number): ClientError | undefined {
  const folder = dirname(socketPath)
  const facts = lstatSync(folder, { throwIfNoEntry: false })
  if (facts === undefined) return undefined
  const problem = socketFolderProblem({ isFolder: facts.isDirectory(), uid: facts.uid, mode: facts.mode }, user)
  if (problem === undefined) return undefined
  const what = `the socket's folder ${folder} ${problem}, so somebody else could listen there`
  return new ClientError('E_UNSAFE_SOCKET', `${what}; remove it, or set SVC_SOCKET to the daemon's socket`)
}

function unreachableMessage(code: string | undefined, socketPath: string): string {
  switch (code) {
    case 'ENOENT':
    case 'ENOTDIR':
    case 'ECONNREFUSED':
      return `no daemon answers at ${socketPath}; start it with "svc start"; if it listens elsewhere, set SVC_SOCKET`
    case 'EACCES':
    case 'EPERM':
      return `no permission to open ${socketPath}; the daemon's socket belongs to the user who runs it`
    case 'EINVAL':
    case 'ENAMETOOLONG':
      return `${socketPath} is too long for a socket path (107 bytes at most); set SVC_SOCKET to a shorter one`
    default:
      return `the connection to the daemon at ${socketPath} broke (${code ?? 'unknown error'}); is it still running?`
  }
}

/** Whether a request changes nothing, so that it can be repeated. */
const isRead = (method: Method): boolean => method === 'GET' || method === 'HEAD'

const badResponse = (status: number, cause?: unknown): ClientError =>
  new ClientError('E_BAD_RESPONSE', `the answer (status ${status}) is not from svcd`, { status, cause })

async function readText(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let sizeBytes = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    sizeBytes += chunk.length
    if (sizeBytes > MAX_JSON_BYTES) {
      response.destroy()
      throw new ClientError('E_BAD_RESPONSE', `the daemon's answer is over ${MAX_JSON_BYTES} bytes`)
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function parseObject(text: string, status: number): object {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw badResponse(status, cause)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw badResponse(status)
  return value
}
