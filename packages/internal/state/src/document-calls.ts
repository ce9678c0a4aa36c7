import { type Clock, systemClock } from '@svc/internal-clock'
import { deserializeError, type SerializedError, serializeError } from '@svc/internal-errors'
import { LimitedThread, workerUrl } from '@svc/internal-workers'
import {
  type Companions,
  type Manifest,
  ManifestError,
  type ModelIndex,
  parseCompanions,
  parseIndex,
  parseManifest,
  parseStoredManifest
} from '@svc/manifest'
import { LibraryError } from './library-error.ts'
import { partsIn } from './model-parts.ts'
import { outsideNamesIn } from './shard-names.ts'

/** What is read of documents, by their kind; a stored manifest may break rules that came after it. */
export interface DocumentKinds {
  readonly index: ModelIndex
  readonly manifest: Manifest
  readonly storedManifest: Manifest
  readonly companions: Companions
  /** The files outside the model that a list of shards names. */
  readonly outsideNames: readonly string[]
  /** The folders of a model's parts. */
  readonly parts: readonly string[]
}

export type DocumentCalls = {
  [Kind in keyof DocumentKinds]: { request: Uint8Array; response: DocumentKinds[Kind] }
}

/** The parser of each kind. Those of documents in canonical form throw ManifestError. */
export const PARSERS: { readonly [Kind in keyof DocumentKinds]: (bytes: Uint8Array) => DocumentKinds[Kind] } = {
  index: parseIndex,
  manifest: parseManifest,
  storedManifest: parseStoredManifest,
  companions: parseCompanions,
  outsideNames: outsideNamesIn,
  parts: partsIn
}

export const documentErrors = {
  encode: (error: unknown): SerializedError => serializeError(error),
  decode: (wire: SerializedError): Error => deserializeError(wire, { ManifestError }),
  lost: (cause: unknown): Error => new Error('the thread that read the document ended', { cause }),
  closed: (): Error => new LibraryError('E_CLOSED', 'the library is closed')
}

/** Shorter documents are read at once: they take less than a thread's answer, whatever is in them. */
const SHORT_BYTES = 16 << 10
const LIMIT_MS = 10_000
const HEAP_MIB = 256

/** Longer documents are read in a thread with a time limit: whoever wrote one chooses how long reading it takes. */
export class DocumentReader {
  readonly #thread: LimitedThread<DocumentCalls>

  constructor(clock: Pick<Clock, 'after'> = systemClock) {
    this.#thread = new LimitedThread({
      url: workerUrl('./document-worker', import.meta.url),
      name: 'svcd-documents',
      oldMib: HEAP_MIB,
      limitMs: LIMIT_MS,
      late: () => new Error(`reading the document took more than ${LIMIT_MS / 1000} s`),
      clock,
      errors: documentErrors
    })
  }

  /** @throws ManifestError as the parser does; LibraryError `E_CLOSED` */
  async parse<Kind extends keyof DocumentKinds>(kind: Kind, bytes: Uint8Array): Promise<DocumentKinds[Kind]> {
    return bytes.length <= SHORT_BYTES
      ? PARSERS[kind](bytes)
      : (this.#thread.call(kind, bytes) as Promise<DocumentKinds[Kind]>)
  }

  close(): Promise<void> {
    return this.#thread.close()
  }
}
