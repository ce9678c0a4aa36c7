import { parentPort } from 'node:worker_threads'
import { type ErrorCodec, plainErrors } from './error-codec.ts'
import type { Calls, ProgressOf, Reply, Request } from './protocol.ts'

export interface CallContext<Progress> {
  /** Aborted when the caller gives up; the handler still has to answer, e.g. by throwing. */
  readonly signal: AbortSignal
  readonly progress: (progress: Progress) => void
}

type Handlers<Of extends Calls<Of>> = {
  readonly [Op in keyof Of]: (
    request: Of[Op]['request'],
    context: CallContext<ProgressOf<Of[Op]>>
  ) => Of[Op]['response'] | Promise<Of[Op]['response']>
}

const NEVER = new AbortController().signal

/**
 * Answers the calls of a `WorkerThread`; called once in the worker's module. Calls run concurrently; with `oneByOne`,
 * each starts when the previous one is answered.
 */
export function serveCalls<Of extends Calls<Of>>(
  handlers: Handlers<Of>,
  {
    errors = plainErrors,
    oneByOne = false
  }: { readonly errors?: Pick<ErrorCodec, 'encode'>; readonly oneByOne?: boolean } = {}
): void {
  const port = parentPort
  if (port === null) throw new Error('calls can be served only in a worker thread')
  const aborts = new Map<number, AbortController>()
  const send = (reply: Reply): void => port.postMessage(reply)

  const answer = async ({ id, op, request, watched }: Extract<Request, { id: number }>): Promise<void> => {
    if (watched) send({ id, begun: true })
    const context: CallContext<unknown> = {
      signal: aborts.get(id)?.signal ?? NEVER,
      progress: (progress) => send({ id, progress })
    }
    try {
      const result: unknown = await handlers[op as keyof Of](request as never, context as never)
      send({ id, result })
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
}
