import type { IncomingMessage, Server } from 'node:http'
import { API_VERSIONS, MAX_BODY_BYTES, ROUTES, type Route, type RouteId } from '@svc/client/protocol'
import fastify, { type FastifyError, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { DaemonError } from '../errors.ts'
import { envelope, JSON_TYPE } from '../http/envelope.ts'
import { createHttpServer, type ServerOptions } from '../http/server.ts'
import type { Log } from '../log.ts'
import type { ApiRoute } from './route.ts'
import { toWireError, type WireError } from './wire-error.ts'

export interface App {
  readonly fastify: FastifyInstance
  readonly server: Server
}

export interface AppOptions extends ServerOptions {
  /** Adds hooks and further routes, before those of the contract. */
  readonly extend?: (app: FastifyInstance) => void
}

/** The routes of the contract on a hardened server. Nothing listens yet. */
export async function createApp(
  routes: Readonly<Record<RouteId, ApiRoute>>,
  log: Log,
  options: AppOptions = {}
): Promise<App> {
  let server: Server | undefined
  const app = fastify({
    serverFactory: (handler) => (server = createHttpServer(handler, options)),
    // the server answers these itself, in turn
    clientErrorHandler: () => undefined,
    logger: false,
    bodyLimit: MAX_BODY_BYTES,
    // routes with a query parse the raw request target themselves
    routerOptions: {
      querystringParser: () => ({}),
      ignoreTrailingSlash: false,
      caseSensitive: true,
      maxParamLength: 1024
    },
    exposeHeadRoutes: false,
    return503OnClosing: false,
    forceCloseConnections: false,
    frameworkErrors: (error, request, reply) => sendError(request, reply, fromFastify(error as FastifyError), log)
  })
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))

  options.extend?.(app)

  for (const { route, answer } of Object.values(routes)) {
    const url = route.path.replaceAll(/\{(\w+)\}/g, ':$1')
    const handler = (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => answer(request, reply, log)
    app.route({ method: route.method, url, handler, bodyLimit: route.maxBodyBytes ?? MAX_BODY_BYTES })
    const hasHead = Object.values(routes).some(
      (other) => other.route.method === 'HEAD' && other.route.path === route.path
    )
    if (route.method === 'GET' && !hasHead) app.route({ method: 'HEAD', url, handler })
  }

  // The static part of a path is compared as it was sent: `%72esolve` is not `resolve`, and an encoded slash is no slash.
  app.addHook('onRequest', (request, reply, done) => {
    const path = pathOf(request.raw)
    if (path.includes('%') && allowedMethods(path).length === 0) notFound(request, reply, log)
    else done()
  })
  app.setNotFoundHandler((request, reply) => notFound(request, reply, log))
  app.setErrorHandler((error, request, reply) => sendError(request, reply, fromAny(error), log, error))
  await app.ready()
  return { fastify: app, server: server! }
}

function pathOf(request: IncomingMessage): string {
  const url = request.url ?? '/'
  const mark = url.indexOf('?')
  return mark < 0 ? url : url.slice(0, mark)
}

const OTHER_VERSION = /^\/(v\d+)(?:\/|$)/

function notFound(request: FastifyRequest, reply: FastifyReply, log: Log): void {
  const path = pathOf(request.raw)
  const version = OTHER_VERSION.exec(path)?.[1]
  const shown = JSON.stringify(path.length > 200 ? `${path.slice(0, 200)}…` : path)
  if (version !== undefined && version !== 'v1') {
    const message = `the version ${version} in ${shown} is not supported; the service supports ${API_VERSIONS.join(', ')}`
    return sendError(
      request,
      reply,
      wireOf(new DaemonError('E_UNSUPPORTED_VERSION', message, { candidates: API_VERSIONS })),
      log
    )
  }
  const allowed = allowedMethods(path)
  if (allowed.length > 0) {
    reply.header('Allow', allowed.join(', '))
    const message = `${request.method} is not possible on ${shown}; use ${allowed.join(' or ')}`
    return sendError(request, reply, wireOf(new DaemonError('E_METHOD_NOT_ALLOWED', message)), log)
  }
  return sendError(request, reply, wireOf(new DaemonError('E_NOT_FOUND', `there is nothing at ${shown}`)), log)
}

const PATTERNS = (Object.values(ROUTES) as Route[]).map(({ method, path }) => ({
  method,
  pattern: new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`)
}))

function allowedMethods(path: string): string[] {
  const methods = new Set<string>()
  for (const { method, pattern } of PATTERNS) {
    if (!pattern.test(path)) continue
    methods.add(method)
    if (method === 'GET') methods.add('HEAD')
  }
  return [...methods].sort()
}

/** Answers with the envelope; what the client is not told goes to the log. */
function sendError(request: FastifyRequest, reply: FastifyReply, wire: WireError, log: Log, error?: unknown): void {
  const { code } = wire.envelope.error
  if (request.raw.destroyed && !request.raw.complete) {
    // nobody reads an answer, and nothing failed here
    log.debug({ method: request.method, path: pathOf(request.raw) }, 'the client left in the middle of its request')
    reply.raw.destroy()
    return
  }
  if (wire.hidden) log.error({ err: error, code, method: request.method, path: pathOf(request.raw) }, 'request failed')
  else log.debug({ code, method: request.method, path: pathOf(request.raw) }, 'request refused')
  if (reply.sent || reply.raw.headersSent) {
    reply.raw.destroy()
    return
  }
  // whatever is left of the request's body is not read
  if (wire.status === 413 || wire.status === 408) reply.header('Connection', 'close')
  reply.code(wire.status).header('Content-Type', JSON_TYPE).send(JSON.stringify(wire.envelope))
}

const wireOf = (error: DaemonError): WireError => toWireError(error)

const fromAny = (error: unknown): WireError =>
  typeof (error as FastifyError | undefined)?.code === 'string' && (error as FastifyError).code.startsWith('FST_')
    ? fromFastify(error as FastifyError)
    : toWireError(error)

function fromFastify(error: FastifyError): WireError {
  const refusal = (status: number, code: Parameters<typeof envelope>[0], message: string): WireError => ({
    status,
    envelope: envelope(code, message),
    hidden: false
  })
  switch (error.code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return refusal(413, 'E_TOO_LARGE', 'the body is larger than this path takes')
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return refusal(400, 'E_BAD_REQUEST', 'the body has another length than Content-Length says')
    case 'FST_ERR_BAD_URL':
      return refusal(400, 'E_BAD_REQUEST', 'the request target is not percent-encoded UTF-8')
    case 'FST_ERR_MAX_PARAM_LENGTH':
      return refusal(404, 'E_NOT_FOUND', 'there is nothing at a path of that length')
    default: {
      const status = error.statusCode ?? 500
      if (status >= 400 && status < 500) return refusal(400, 'E_BAD_REQUEST', 'the request cannot be understood')
      return toWireError(error)
    }
  }
}
