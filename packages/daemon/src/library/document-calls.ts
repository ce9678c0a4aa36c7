import type { HubDocuments, ReadHubDocument } from '@svc/hub'
import { type Clock, systemClock } from '@svc/internal-clock'
import { loopBudget } from '@svc/internal-concurrency'
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
import {
  type CheckedPieceLayers,
  MetainfoError,
  parseInfo,
  parsePieceLayers,
  parseTorrent,
  type TorrentInfo
} from '@svc/metainfo'
import type { OciDocuments, ReadOciDocument } from '@svc/oci'
import type { Sha256Digest } from '@svc/ref'
import type { V1Layout } from '@svc/swarm-v1'
import { parseDigestList } from './digest-list.ts'
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
  readonly hub: HubDocuments[keyof HubDocuments]['found']
  readonly oci: OciDocuments[keyof OciDocuments]
  /** Whether the listing of a publication says that a model is withheld. */
  readonly withheld: boolean
  /** The info dictionary. */
  readonly info: TorrentInfo
  /** That of a torrent file. */
  readonly torrent: TorrentInfo
  readonly pieceLayers: CheckedPieceLayers
  readonly v1Torrent: V1Layout
  /** The SHA-256 of each path, on a page of a catalog. Undefined where it has none, or contradicts itself. */
  readonly digestList: readonly (readonly [path: string, sha256: string])[] | undefined
}

/** What else decides what is read of a document. */
interface DocumentAbouts {
  readonly hub: readonly [kind: keyof HubDocuments, about: HubDocuments[keyof HubDocuments]['about']]
  readonly oci: keyof OciDocuments
  /** The pinned manifest, and the listing's place, for messages. */
  readonly withheld: { readonly pin: Sha256Digest; readonly at: string }
  readonly pieceLayers: Pick<TorrentInfo, 'files' | 'pieceLength'>
  /** The infohash. */
  readonly v1Torrent: string
}
type AboutOf<Kind extends keyof DocumentKinds> = Kind extends keyof DocumentAbouts ? DocumentAbouts[Kind] : undefined

type Parsers = {
  readonly [Kind in keyof DocumentKinds]: (
    bytes: Uint8Array,
    about: AboutOf<Kind>
  ) => DocumentKinds[Kind] | Promise<DocumentKinds[Kind]>
}

/** The parser of each kind; some load the library that has it. Those of documents in canonical form throw ManifestError. */
export const PARSERS: Parsers = {
  index: parseIndex,
  manifest: parseManifest,
  storedManifest: parseStoredManifest,
  companions: parseCompanions,
  outsideNames: outsideNamesIn,
  parts: partsIn,
  hub: async (bytes, [kind, about]) => (await import('@svc/hub')).HUB_DOCUMENTS[kind](bytes, about as never),
  oci: async (bytes, kind) => (await import('@svc/oci')).OCI_DOCUMENTS[kind](bytes),
  withheld: async (bytes, { pin, at }) => {
    const { models } = (await import('@svc/publish')).parseListing(bytes, at)
    return models.some(({ manifest, withheld }) => manifest === pin && withheld === true)
  },
  info: parseInfo,
  torrent: (bytes) => parseTorrent(bytes).info,
  pieceLayers: parsePieceLayers,
  v1Torrent: async (bytes, infohash) => (await import('@svc/swarm-v1')).parseV1Torrent(bytes, infohash),
  digestList: async (bytes) => {
    const digests = await parseDigestList(new TextDecoder().decode(bytes))
    return digests && [...digests]
  }
}

/** The classes of errors that parsers throw. */
const ERRORS: { readonly [Kind in keyof DocumentKinds]?: () => Promise<Parameters<typeof deserializeError>[1]> } = {
  hub: async () => (await import('@svc/hub')).HUB_DOCUMENT_ERRORS,
  oci: async () => (await import('@svc/oci')).OCI_DOCUMENT_ERRORS,
  withheld: async () => ({ PublishError: (await import('@svc/publish')).PublishError }),
  v1Torrent: async () => ({ SwarmV1Error: (await import('@svc/swarm-v1')).SwarmV1Error })
}

/** Answers that are JSON. They come back as texts, since the reader chooses neither how long a list is nor how costly it is to copy. */
const IN_TEXTS: ReadonlySet<keyof DocumentKinds> = new Set(['hub', 'oci', 'digestList'])

/** A value as the texts of its parts: a long list is cut. */
type Texts =
  | { readonly list: readonly string[] }
  | { readonly fields: readonly (readonly [string, Texts])[] }
  | { readonly text: string }
  | undefined

/** Read in far less than a turn of the event loop. */
const TEXT_ITEMS = 100

function textsOf(value: unknown): Texts {
  if (value === undefined) return undefined
  if (Array.isArray(value)) {
    const list: string[] = []
    for (let at = 0; at < value.length; at += TEXT_ITEMS) list.push(JSON.stringify(value.slice(at, at + TEXT_ITEMS)))
    return { list }
  }
  if (typeof value !== 'object' || value === null) return { text: JSON.stringify(value) }
  return { fields: Object.entries(value).map(([key, field]) => [key, textsOf(field)] as const) }
}

async function valueIn(texts: Texts): Promise<unknown> {
  if (texts === undefined) return undefined
  if ('text' in texts) return JSON.parse(texts.text)
  if ('list' in texts) {
    const list: unknown[] = []
    for (const text of texts.list) {
      list.push(...(JSON.parse(text) as unknown[]))
      if (loopBudget.isOver('lists')) await loopBudget.next('lists')
    }
    return list
  }
  const fields: [string, unknown][] = []
  for (const [key, field] of texts.fields) {
    fields.push([key, await valueIn(field)])
    if (loopBudget.isOver('lists')) await loopBudget.next('lists')
  }
  return Object.fromEntries(fields)
}

export type DocumentCalls = {
  [Kind in keyof DocumentKinds]: {
    request: { readonly bytes: Uint8Array; readonly about: AboutOf<Kind> }
    response: DocumentKinds[Kind] | { readonly texts: Texts }
  }
}

const inThread =
  <Kind extends keyof DocumentKinds>(kind: Kind) =>
  async ({ bytes, about }: DocumentCalls[Kind]['request']): Promise<DocumentCalls[Kind]['response']> => {
    const found = await PARSERS[kind](bytes, about)
    return IN_TEXTS.has(kind) ? { texts: textsOf(found) } : found
  }

/** What the thread answers with. */
export const HANDLERS = Object.fromEntries(
  (Object.keys(PARSERS) as (keyof DocumentKinds)[]).map((kind) => [kind, inThread(kind)])
) as { readonly [Kind in keyof DocumentKinds]: ReturnType<typeof inThread<Kind>> }

/** A parser's error, whose class only the kind knows. */
class ParserError extends Error {
  override readonly name = 'ParserError'
  readonly wire: SerializedError

  constructor(wire: SerializedError) {
    super(wire.message)
    this.wire = wire
  }
}

export const documentErrors = {
  encode: (error: unknown): SerializedError => serializeError(error),
  decode: (wire: SerializedError): Error => new ParserError(wire),
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

  /** @throws as the parser does; LibraryError `E_CLOSED` */
  async parse<Kind extends keyof DocumentKinds>(
    kind: Kind,
    bytes: Uint8Array,
    ...[about]: AboutOf<Kind> extends undefined ? [] : [AboutOf<Kind>]
  ): Promise<DocumentKinds[Kind]> {
    if (bytes.length <= SHORT_BYTES) return PARSERS[kind](bytes, about as AboutOf<Kind>)
    try {
      const found = await this.#thread.call(kind, { bytes, about: about as AboutOf<Kind> })
      return (IN_TEXTS.has(kind) ? await valueIn((found as { texts: Texts }).texts) : found) as DocumentKinds[Kind]
    } catch (error) {
      throw error instanceof ParserError
        ? deserializeError(error.wire, { ManifestError, MetainfoError, ...(await ERRORS[kind]?.()) })
        : error
    }
  }

  close(): Promise<void> {
    return this.#thread.close()
  }
}

export type ParseDocument = DocumentReader['parse']

/** For programs without a loop that others wait for. */
export const parseHere: ParseDocument = async (kind, bytes, ...[about]) => PARSERS[kind](bytes, about as never)

/** For a client of the hub. */
export const hubDocumentsIn =
  (parse: ParseDocument): ReadHubDocument =>
  (kind, bytes, about) =>
    parse('hub', bytes, [kind, about]) as Promise<HubDocuments[typeof kind]['found']>

/** For a client of registries, and for layouts. */
export const ociDocumentsIn =
  (parse: ParseDocument): ReadOciDocument =>
  (kind, bytes) =>
    parse('oci', bytes, kind) as Promise<OciDocuments[typeof kind]>
