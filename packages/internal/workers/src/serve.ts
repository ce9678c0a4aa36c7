import { parentPort, type Transferable } from 'node:worker_threads'
import { type ErrorCodec, plainErrors } from './error-codec.ts'
import type { Calls, ProgressOf, Reply, Request } from './protocol.ts'

export interface CallContext<Progress> {
  /** Aborted when the caller gives up; the handler still has to answer, e.g. by throwing. */
  readonly signal: AbortSignal
  readonly progress: (progress: Progress) => void
  /** Transfers these buffers of the response instead of copying them. */
  readonly transfer: (...list: Transferable[]) => void
}

export type Handlers<Of extends Calls<Of>> = {
  readonly [Op in keyof Of]: (
    request: Of[Op]['request'],
    context: CallContext<ProgressOf<Of[Op]>>
  ) => Of[Op]['response'] | Promise<Of[Op]['response']>
}

export interface ServedThread {
  /** Sends the owner an event that belongs to no call (`onEvent`). */
  post(event: unknown, transfer?: readonly Transferable[]): void
}

const NEVER = new AbortController().signal

/**
 * Answers the calls of a `WorkerThread`; called once in the worker's module. Calls run concurrently; with `oneByOne`,
 * each starts when the previous one is answered.
 */
export function serveCalls<Of extends Calls<Of>>(
  handlers: Handlers<Of>,
  { errors = plainErrors, oneByOne = false }: { readonly errors?: ErrorCodec; readonly oneByOne?: boolean } = {}
): ServedThread {
  const port = parentPort
  if (port === null) throw new Error('calls can be served only in a worker thread')
  const aborts = new Map<number, AbortController>()
  const send = (reply: Reply, transfer: readonly Transferable[] = []): void => port.postMessage(reply, transfer)

  const answer = async ({ id, op, request }: Extract<Request, { id: number }>): Promise<void> => {
    const given: Transferable[] = []
    const context: CallContext<unknown> = {
      signal: aborts.get(id)?.signal ?? NEVER,
      progress: (progress) => send({ id, progress }),
      transfer: (...list) => void given.push(...list)
    }
    try {
      const result: unknown = await handlers[op as keyof Of](request as never, context as never)
      send({ id, result }, given)
    } catch (error) {
      send({ id, error: errors.encode(error) })
    } finally {
      aborts.delete(id)
    }
  }

  let turn: Promise<void> = Promise.resolve()
  port.on('message', (message: Request) => {
    if ('abort' in message) return aborts.get(message.abort)?.abort()
    if (message.abortable) aborts.set(message.id, new AbortController())
    if (oneByOne) turn = turn.then(() => answer(message))
    else void answer(message)
  })
  return { post: (event, transfer) => send({ event }, transfer) }
}
