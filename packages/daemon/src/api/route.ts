import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Route } from '@svc/client/protocol'
import type { Static, TObject, TSchema } from 'typebox'
import { JSON_TYPE } from '../http/envelope.ts'
import type { Log } from '../log.ts'
import { readBody } from './body.ts'
import { readQuery } from './query.ts'

/** The static type of one part of a route's contract; nothing where the route has no such part. */
type Declared<R extends Route, K extends 'params' | 'query' | 'body'> = R extends {
  readonly [P in K]: infer S extends TSchema
}
  ? Static<S>
  : Readonly<Record<never, never>>

/** A request of this route, read by the route's own schemas. */
export interface Call<R extends Route> {
  readonly params: Declared<R, 'params'>
  readonly query: Declared<R, 'query'>
  readonly body: Declared<R, 'body'>
}

/** What the contract says the route answers with. */
export type Answer<R extends Route> = R extends { readonly response: infer S extends TSchema } ? Static<S> : never

/** The connection's side of a call, for answers that are no JSON document. */
export interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

/** A request whose target and body have been read. */
interface ApiRequest {
  readonly message: IncomingMessage
  /** What stands in the places of the route's path, decoded. */
  readonly params: Readonly<Record<string, string>>
  /** undefined where none was announced. */
  readonly body: Uint8Array | undefined
}

/** A route with what answers it; made by {@link defineRoute} and {@link defineByteRoute}. */
export interface ApiRoute {
  readonly route: Pick<Route, 'method' | 'path' | 'maxBodyBytes'>
  /** Writes the answer. What it throws before it began becomes the envelope. */
  answer(request: ApiRequest, response: ServerResponse, log: Log): Promise<void>
}

/**
 * A route of the contract that answers with a JSON document. Types of query, body and answer are those of `route`'s schemas, and
 * so is the status; what does not fit is refused with `E_BAD_REQUEST` before `handler` is called. What it throws becomes the
 * envelope (`wire-error.ts`).
 */
export function defineRoute<const R extends Route>(
  route: R,
  handler: (call: Call<R>, exchange: Exchange) => Answer<R> | Promise<Answer<R>>
): ApiRoute {
  return {
    route,
    async answer(request, response, log) {
      const document = await handler(readCall(route, request, log), { request: request.message, response })
      sendJson(response, route.status, document)
    }
  }
}

/** A route of the contract that answers with bytes, which `handler` writes itself once it has resolved what it needs. */
export function defineByteRoute<const R extends Route>(
  route: R,
  handler: (call: Call<R>) => Promise<(exchange: Exchange) => Promise<void>>
): ApiRoute {
  return {
    route,
    async answer(request, response, log) {
      const send = await handler(readCall(route, request, log))
      try {
        await send({ request: request.message, response })
      } catch (error) {
        log.error({ err: error, path: request.message.url }, 'an answer broke off')
        response.destroy()
      }
    }
  }
}

/**
 * For a route that may take minutes: switches the idle timeout off until the response has ended. A client that left
 * looks like one that only closed its sending half, so the work goes on until another request ends it.
 */
export function takeTime({ request }: Exchange): void {
  request.socket.setTimeout(0)
}

/** Answers with a JSON document. */
export function sendJson(response: ServerResponse, status: number, document: unknown): void {
  const body = JSON.stringify(document)
  const sizeBytes = Buffer.byteLength(body)
  response.writeHead(status, { 'Content-Type': JSON_TYPE, 'Content-Length': sizeBytes })
  // for plain ASCII both encodings are the same bytes, and this one is copied without being looked at
  response.end(body, sizeBytes === body.length ? 'latin1' : 'utf8')
}

function readCall<R extends Route>(route: R, request: ApiRequest, log: Log): Call<R> {
  const { query, body } = route as Route
  return {
    params: request.params,
    query: query === undefined ? {} : readQuery(query, request.message.url ?? ''),
    body: body === undefined ? {} : knownFields(body, request, log)
  } as Call<R>
}

function knownFields(schema: TObject, request: ApiRequest, log: Log): object {
  const { body, unknown } = readBody(schema, request.body)
  if (unknown.length > 0) {
    const fields = unknown.slice(0, 20).map((name) => name.slice(0, 100))
    log.info({ path: request.message.url, fields }, 'unknown fields ignored')
  }
  return body
}
