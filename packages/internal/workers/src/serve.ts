import { parentPort, type Transferable } from 'node:worker_threads'
import { type ErrorCodec, plainErrors } from './error-codec.ts'
import type { Calls, ProgressOf, Reply, Request } from './protocol.ts'

/** What a handler has beside its request. */
export interface CallContext<Progress> {
  /** Fires when the caller gives up; the handler still answers, by throwing for instance. */
  readonly signal: AbortSignal
  readonly progress: (progress: Progress) => void
  /** These buffers of the answer are given away instead of copied. */
  readonly transfer: (...list: Transferable[]) => void
}

export type Handlers<Of extends Calls<Of>> = {
  readonly [Op in keyof Of]: (
    request: Of[Op]['request'],
    context: CallContext<ProgressOf<Of[Op]>>
  ) => Of[Op]['response'] | Promise<Of[Op]['response']>
}

export interface ServedThread {
  /** Tells the owner something that no call asked for (`onEvent`). */
  post(event: unknown, transfer?: readonly Transferable[]): void
}

const NEVER = new AbortController().signal

/**
 * Answers the calls of a `WorkerThread`: to be called once, in the worker's module. Calls run side by side as far as their handlers
 * await; with `oneByOne` the next one begins when the one before is answered.
 */
export function serveCalls<Of extends Calls<Of>>(
  handlers: Handlers<Of>,
  { errors = plainErrors, oneByOne = false }: { readonly errors?: ErrorCodec; readonly oneByOne?: boolean } = {}
): ServedThread {
  const port = parentPort
  if (port === null) throw new Error('calls are served in a worker thread')
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
