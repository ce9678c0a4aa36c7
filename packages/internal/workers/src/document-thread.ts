import type { Clock } from '@svc/internal-clock'
import { deserializeError, type SerializedError, serializeError } from '@svc/internal-errors'
import type { ErrorCodec } from './error-codec.ts'
import { LimitedThread } from './limited-thread.ts'
import type { Calls } from './protocol.ts'

/** Shorter documents are read at once: they take less than a thread's answer, whatever is in them. */
export const SHORT_DOCUMENT_BYTES = 16 << 10
const LIMIT_MS = 10_000
const HEAP_MIB = 256

/** A thread with a time limit for longer documents: whoever wrote one chooses how long reading it takes. */
export const documentThread = <Of extends Calls<Of>>(options: {
  readonly url: URL
  readonly name: string
  readonly errors: ErrorCodec
  readonly clock: Pick<Clock, 'after'>
}): LimitedThread<Of> =>
  new LimitedThread<Of>({
    ...options,
    oldMib: HEAP_MIB,
    limitMs: LIMIT_MS,
    late: () => new Error(`reading the document took more than ${LIMIT_MS / 1000} s`)
  })

/** A parser's error, whose class only {@link withClass} is told. */
class ParserError extends Error {
  override readonly name = 'ParserError'
  readonly wire: SerializedError

  constructor(wire: SerializedError) {
    super(wire.message)
    this.wire = wire
  }
}

/** Of a thread that runs parsers with different classes of errors. */
export const parserErrors = (closed: () => Error) => ({
  encode: (error: unknown): SerializedError => serializeError(error),
  decode: (wire: SerializedError): Error => new ParserError(wire),
  lost: (cause: unknown): Error => new Error('the thread that read the document ended', { cause }),
  closed
})

/** An error of a thread with {@link parserErrors}, which gets its class again if it is among these. */
export const withClass = (error: unknown, classes: Parameters<typeof deserializeError>[1]): unknown =>
  error instanceof ParserError ? deserializeError(error.wire, classes) : error
