import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Route } from '@svc/client/protocol'
import { JSON_TYPE, sendJson } from '@svc/internal-server'
import type { Log } from '@svc/library/parts'
import type { Static, TObject, TSchema } from 'typebox'
import type { DeepReadonly } from '../deep-readonly.ts'
import { readJsonBody } from './body.ts'
import { readQuery } from './query.ts'

/** The static type of one component of a route's contract; an empty object if the route does not have it. */
type Declared<R extends Route, K extends 'params' | 'query' | 'body'> = R extends {
  readonly [P in K]: infer S extends TSchema
}
  ? Static<S>
  : Readonly<Record<never, never>>

/** A request of this route, validated by the route's schemas. */
export interface RouteRequest<R extends Route> {
  readonly params: Declared<R, 'params'>
  readonly query: Declared<R, 'query'>
  readonly body: Declared<R, 'body'>
}

export type RouteResponse<R extends Route> = R extends { readonly response: infer S extends TSchema }
  ? DeepReadonly<Static<S>>
  : never

/** The HTTP objects of a call, for responses that are not JSON. */
export interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

/** A request whose target and body have been read. */
interface ApiRequest {
  readonly message: IncomingMessage
  /** The parameters in the route's path, decoded. */
  readonly params: Readonly<Record<string, string>>
  /** Undefined if the request has none. */
  readonly body: Uint8Array | undefined
}

/** A route with its handler; made by {@link defineRoute} and {@link defineByteRoute}. */
export interface ApiRoute {
  readonly route: Pick<Route, 'method' | 'path' | 'maxBodyBytes'>
  /** Writes the response. An error thrown before it has begun is sent as an envelope. */
  answer(request: ApiRequest, response: ServerResponse, log: Log): Promise<void>
}

/**
 * A route that responds with JSON, its types and status those of `route`. Invalid requests are refused with
 * `E_BAD_REQUEST` before `handler` is called. Its errors are sent as envelopes (`wire-error.ts`).
 */
export function defineRoute<const R extends Route>(
  route: R,
  handler: (call: RouteRequest<R>, exchange: Exchange) => RouteResponse<R> | Promise<RouteResponse<R>>
): ApiRoute {
  return {
    route,
    async answer(request, response, log) {
      const call = await readCall(route, request, log)
      const document = await handler(call, { request: request.message, response })
      sendJson(response, route.status, document)
    }
  }
}

/** A route of the contract that responds with bytes, or with JSON that was made in pieces, which `handler` writes itself. */
export function defineByteRoute<const R extends Route>(
  route: R,
  handler: (call: RouteRequest<R>) => Promise<(exchange: Exchange) => Promise<void>>
): ApiRoute {
  return {
    route,
    async answer(request, response, log) {
      const send = await handler(await readCall(route, request, log))
      try {
        await send({ request: request.message, response })
      } catch (error) {
        log.error({ err: error, path: request.message.url }, 'a response was cut off')
        response.destroy()
      }
    }
  }
}

/**
 * For routes that may take minutes: disables the idle timeout until the response has ended. A client that disconnected
 * looks like one that only closed its sending side, so the work continues until another request ends it.
 */
export function takeTime({ request }: Exchange): void {
  request.socket.setTimeout(0)
}

/** Sends a JSON document that is text already, in pieces. */
export function sendJsonText(response: ServerResponse, status: number, pieces: readonly Uint8Array[]): void {
  const sizeBytes = pieces.reduce((sum, { length }) => sum + length, 0)
  response.writeHead(status, { 'Content-Type': JSON_TYPE, 'Content-Length': sizeBytes })
  response.cork()
  for (const piece of pieces) response.write(piece)
  response.end()
}

async function readCall<R extends Route>(route: R, request: ApiRequest, log: Log): Promise<RouteRequest<R>> {
  const { query, body } = route as Route
  return {
    params: request.params,
    query: query === undefined ? {} : readQuery(query, request.message.url ?? ''),
    body: body === undefined ? {} : await knownFields(body, request, log)
  } as RouteRequest<R>
}

async function knownFields(schema: TObject, request: ApiRequest, log: Log): Promise<object> {
  const { body, unknown } = await readJsonBody(schema, request.body)
  if (unknown.length > 0) {
    const fields = unknown.slice(0, 20).map((name) => name.slice(0, 100))
    log.info({ path: request.message.url, fields }, 'unknown fields ignored')
  }
  return body
}
