import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { API_VERSIONS, MAX_BODY_BYTES, type RouteId } from '@svc/client/protocol'
import {
  BodyError,
  createHttpServer,
  endConnectionWith,
  envelope,
  RouteTable,
  readRequestBody,
  type ServerOptions,
  sendJson
} from '@svc/internal-server'
import type { Log } from '@svc/library/parts'
import { DaemonError } from '../errors.ts'
import type { ApiRoute } from './route.ts'
import { toWireError, type WireError } from './wire-error.ts'

export interface AppOptions extends ServerOptions {
  /** Routes in addition to the contract's. */
  readonly more?: readonly ApiRoute[]
  /** Returns or throws an error to refuse a request before any of it is read. */
  readonly refuse?: (request: IncomingMessage) => DaemonError | undefined
}

/** Longer path parameters are not looked up. */
const MAX_PARAM_LENGTH = 1024

/** The routes of the contract on a hardened server. Nothing listens yet. */
export function createApp(
  routes: Readonly<Record<RouteId, ApiRoute>>,
  log: Log,
  { more = [], refuse, ...options }: AppOptions = {}
): Server {
  const table = new RouteTable<ApiRoute>()
  const all = [...more, ...Object.values(routes)]
  for (const each of all) {
    const { method, path } = each.route
    table.add(method, path, each)
    const hasHead = all.some(({ route }) => route.method === 'HEAD' && route.path === path)
    if (method === 'GET' && !hasHead) table.add('HEAD', path, each)
  }

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    try {
      const refusal = refuse?.(request)
      if (refusal !== undefined) throw refusal
      const path = pathOf(request)
      if (path.includes('%')) tryDecode(path)
      const match = table.find(request.method ?? '', path)
      const params = match === undefined ? {} : decoded(match.params)
      // the body is read even if no route takes it: a client that is still sending when its connection closes never
      // sees the response
      const body = await readRequestBody(request, match?.route.route.maxBodyBytes ?? MAX_BODY_BYTES)
      if (match === undefined) throw notFound(request, response, path, table.methodsOf(path))
      await match.route.answer({ message: request, params, body }, response, log)
    } catch (error) {
      sendError(request, response, error, log)
    }
  }
  return createHttpServer((request, response) => void handle(request, response), options)
}

function pathOf(request: IncomingMessage): string {
  const url = request.url ?? '/'
  const mark = url.indexOf('?')
  return mark < 0 ? url : url.slice(0, mark)
}

function tryDecode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch (cause) {
    throw new DaemonError('E_BAD_REQUEST', 'the request target is not percent-encoded UTF-8', { cause })
  }
}

function decoded(params: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const result: Record<string, string> = {}
  for (const [name, value] of Object.entries(params)) {
    if (value.length > MAX_PARAM_LENGTH) throw new DaemonError('E_NOT_FOUND', 'no route has a path of that length')
    result[name] = value.includes('%') ? tryDecode(value) : value
  }
  return result
}

const OTHER_VERSION = /^\/(v\d+)(?:\/|$)/

/** The error for a path without a route; sets `Allow` if another method exists. */
function notFound(
  request: IncomingMessage,
  response: ServerResponse,
  path: string,
  allowed: readonly string[]
): DaemonError {
  const version = OTHER_VERSION.exec(path)?.[1]
  const shown = JSON.stringify(path.length > 200 ? `${path.slice(0, 200)}…` : path)
  if (version !== undefined && version !== 'v1') {
    const message = `the version ${version} in ${shown} is not supported; the service supports ${API_VERSIONS.join(', ')}`
    return new DaemonError('E_UNSUPPORTED_VERSION', message, { candidates: API_VERSIONS })
  }
  if (allowed.length > 0) {
    response.setHeader('Allow', allowed.join(', '))
    const message = `${request.method} is not allowed on ${shown}; use ${allowed.join(' or ')}`
    return new DaemonError('E_METHOD_NOT_ALLOWED', message)
  }
  return new DaemonError('E_NOT_FOUND', `there is no path ${shown}`)
}

/** Sends the error envelope, and logs the details that the client must not see. */
function sendError(request: IncomingMessage, response: ServerResponse, error: unknown, log: Log): void {
  const { status, envelope, hidden } = wireOf(error)
  const { code } = envelope.error
  const { method } = request
  if (request.destroyed && !request.complete) {
    // the client is gone: there is no reader, and nothing failed here
    log.debug({ method, path: pathOf(request) }, 'the client disconnected in the middle of its request')
    response.destroy()
    return
  }
  if (hidden) log.error({ err: error, code, method, path: pathOf(request) }, 'request failed')
  else log.debug({ code, method, path: pathOf(request) }, 'request refused')
  if (response.headersSent) {
    response.destroy()
    return
  }
  // the rest of the request's body is not read
  if (status === 413 || status === 408) endConnectionWith(response)
  sendJson(response, status, envelope)
}

function wireOf(error: unknown): WireError {
  if (!(error instanceof BodyError)) return toWireError(error)
  const tooLarge = error.problem === 'too-large'
  return {
    status: tooLarge ? 413 : 400,
    envelope: envelope(tooLarge ? 'E_TOO_LARGE' : 'E_BAD_REQUEST', error.message),
    hidden: false
  }
}
