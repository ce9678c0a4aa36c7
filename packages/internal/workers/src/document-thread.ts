import { type Clock, systemClock } from '@svc/internal-clock'
import { deserializeError, type SerializedError, serializeError } from '@svc/internal-errors'
import { LimitedThread } from './limited-thread.ts'
import { yieldToOthers } from './priority.ts'
import { serveCalls } from './serve.ts'
import { type Texts, textsOf, valueIn } from './texts.ts'
import { RECOGNITION_NICE } from './thread-priority.ts'

/** Shorter documents are read at once: they take less than a thread's answer, whatever is in them. */
const SHORT_DOCUMENT_BYTES = 16 << 10
const LIMIT_MS = 10_000
const HEAP_MIB = 256

/** What is read of a kind of document, and what else decides it. Both are plain data. */
export interface DocumentKind<Found, About extends readonly unknown[] = []> {
  readonly found: Found
  readonly about: About
}
type DocumentKindsOf<Kinds> = { readonly [Kind in keyof Kinds]: DocumentKind<unknown, readonly unknown[]> }

/** How documents are read, in the thread and beside it. */
export interface DocumentParsers<Kinds extends DocumentKindsOf<Kinds>> {
  readonly parsers: {
    readonly [Kind in keyof Kinds]: (
      bytes: Uint8Array,
      ...about: Kinds[Kind]['about']
    ) => Kinds[Kind]['found'] | Promise<Kinds[Kind]['found']>
  }
  /** Kinds that are JSON. They come back as texts, since the author chooses neither how long a list is nor how costly it is to copy. */
  readonly json?: readonly (keyof Kinds)[]
  /** The classes of errors that a parser throws, by their names. */
  readonly errors: (kind: keyof Kinds) => ErrorClasses | Promise<ErrorClasses>
  /** The error of a call after the end. */
  readonly closed: () => Error
}
type ErrorClasses = Parameters<typeof deserializeError>[1]

interface ParserCalls {
  readonly parse: {
    readonly request: { readonly kind: PropertyKey; readonly bytes: Uint8Array; readonly about: readonly unknown[] }
    readonly response: unknown
  }
}

/** An error of a parser, whose class is known where the parser is. */
class ParserError extends Error {
  override readonly name = 'ParserError'
  readonly wire: SerializedError

  constructor(wire: SerializedError) {
    super(wire.message)
    this.wire = wire
  }
}

/** Reads documents of others: longer ones in a thread with a time limit, since whoever wrote one chooses how long reading it takes. */
export class DocumentThread<Kinds extends DocumentKindsOf<Kinds>> {
  readonly #documents: DocumentParsers<Kinds>
  readonly #thread: LimitedThread<ParserCalls>

  /** @param options.url of a module that calls {@link serveDocuments} with the same documents */
  constructor(
    documents: DocumentParsers<Kinds>,
    options: { readonly url: URL; readonly name: string; readonly clock?: Pick<Clock, 'after'> }
  ) {
    this.#documents = documents
    this.#thread = new LimitedThread<ParserCalls>({
      clock: systemClock,
      ...options,
      errors: {
        encode: serializeError,
        decode: (wire: SerializedError): Error => new ParserError(wire),
        lost: (cause: unknown): Error => new Error('the thread that read the document ended', { cause }),
        closed: documents.closed
      },
      oldMib: HEAP_MIB,
      limitMs: LIMIT_MS,
      late: () => new Error(`reading the document took more than ${LIMIT_MS / 1000} s`)
    })
  }

  /** @throws as the parser does */
  readonly parse = async <Kind extends keyof Kinds>(
    kind: Kind,
    bytes: Uint8Array,
    ...about: Kinds[Kind]['about']
  ): Promise<Kinds[Kind]['found']> => {
    const { parsers, json, errors } = this.#documents
    if (bytes.length <= SHORT_DOCUMENT_BYTES) return parsers[kind](bytes, ...about)
    try {
      const found = await this.#thread.call('parse', { kind, bytes, about })
      return json?.includes(kind) ? await valueIn(found as Texts) : found
    } catch (error) {
      throw error instanceof ParserError ? deserializeError(error.wire, await errors(kind)) : error
    }
  }

  close(): Promise<void> {
    return this.#thread.close()
  }
}

/** Called once in the module of a {@link DocumentThread}. */
export function serveDocuments<Kinds extends DocumentKindsOf<Kinds>>({ parsers, json }: DocumentParsers<Kinds>): void {
  yieldToOthers(RECOGNITION_NICE)
  const parse = async ({ kind, bytes, about }: ParserCalls['parse']['request']): Promise<unknown> => {
    const found = await parsers[kind as keyof Kinds](bytes, ...(about as Kinds[keyof Kinds]['about']))
    return json?.includes(kind as keyof Kinds) ? textsOf(found) : found
  }
  serveCalls<ParserCalls>({ parse }, { errors: { encode: serializeError }, oneByOne: true })
}
