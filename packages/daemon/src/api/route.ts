import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Route } from '@svc/client/protocol'
import type { FastifyReply, FastifyRequest } from 'fastify'
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

/** A route with what answers it; made by {@link defineRoute} and {@link defineByteRoute}. */
export interface ApiRoute {
  readonly route: Route
  answer(request: FastifyRequest, reply: FastifyReply, log: Log): Promise<unknown>
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
    async answer(request, reply, log) {
      const exchange = { request: request.raw, response: reply.raw }
      const document = await handler(readCall(route, request, log), exchange)
      sendJson(reply, route.status, document)
      return reply
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
    async answer(request, reply, log) {
      const send = await handler(readCall(route, request, log))
      reply.hijack()
      try {
        await send({ request: request.raw, response: reply.raw })
      } catch (error) {
        log.error({ err: error, path: request.url }, 'an answer broke off')
        reply.raw.destroy()
      }
      return reply
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
export function sendJson(reply: FastifyReply, status: number, document: unknown): void {
  reply.code(status).header('Content-Type', JSON_TYPE).send(JSON.stringify(document))
}

function readCall<R extends Route>(route: R, request: FastifyRequest, log: Log): Call<R> {
  const { query, body } = route as Route
  return {
    params: request.params,
    query: query === undefined ? {} : readQuery(query, request.raw.url ?? ''),
    body: body === undefined ? {} : knownFields(body, request, log)
  } as Call<R>
}

function knownFields(schema: TObject, request: FastifyRequest, log: Log): object {
  const { body, unknown } = readBody(schema, request.body as Uint8Array | undefined)
  if (unknown.length > 0) {
    const fields = unknown.slice(0, 20).map((name) => name.slice(0, 100))
    log.info({ path: request.url, fields }, 'unknown fields ignored')
  }
  return body
}
