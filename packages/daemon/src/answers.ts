import type { HubDocuments, ReadHubDocument } from '@svc/hub'
import { type Clock, systemClock } from '@svc/internal-clock'
import { loopBudget } from '@svc/internal-concurrency'
import {
  documentThread,
  type LimitedThread,
  parserErrors,
  SHORT_DOCUMENT_BYTES,
  withClass,
  workerUrl
} from '@svc/internal-workers'
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
import { DaemonError } from './errors.ts'

/** What is read of the documents of other machines, by their kind. */
export interface AnswerKinds {
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
interface AnswerAbouts {
  readonly hub: readonly [kind: keyof HubDocuments, about: HubDocuments[keyof HubDocuments]['about']]
  readonly oci: keyof OciDocuments
  /** The pinned manifest, and the listing's place, for messages. */
  readonly withheld: { readonly pin: Sha256Digest; readonly at: string }
  readonly pieceLayers: Pick<TorrentInfo, 'files' | 'pieceLength'>
  /** The infohash. */
  readonly v1Torrent: string
}
type AboutOf<Kind extends keyof AnswerKinds> = Kind extends keyof AnswerAbouts ? AnswerAbouts[Kind] : undefined

type Parsers = {
  readonly [Kind in keyof AnswerKinds]: (
    bytes: Uint8Array,
    about: AboutOf<Kind>
  ) => AnswerKinds[Kind] | Promise<AnswerKinds[Kind]>
}

/** The parser of each kind; some load the library that has it. */
const PARSERS: Parsers = {
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
const ERRORS: { readonly [Kind in keyof AnswerKinds]?: () => Promise<Parameters<typeof withClass>[1]> } = {
  hub: async () => (await import('@svc/hub')).HUB_DOCUMENT_ERRORS,
  oci: async () => (await import('@svc/oci')).OCI_DOCUMENT_ERRORS,
  withheld: async () => ({ PublishError: (await import('@svc/publish')).PublishError }),
  v1Torrent: async () => ({ SwarmV1Error: (await import('@svc/swarm-v1')).SwarmV1Error })
}

/** Answers that are JSON. They come back as texts, since the reader chooses neither how long a list is nor how costly it is to copy. */
const IN_TEXTS: ReadonlySet<keyof AnswerKinds> = new Set(['hub', 'oci', 'digestList'])

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

export type AnswerCalls = {
  [Kind in keyof AnswerKinds]: {
    request: { readonly bytes: Uint8Array; readonly about: AboutOf<Kind> }
    response: AnswerKinds[Kind] | { readonly texts: Texts }
  }
}

const inThread =
  <Kind extends keyof AnswerKinds>(kind: Kind) =>
  async ({ bytes, about }: AnswerCalls[Kind]['request']): Promise<AnswerCalls[Kind]['response']> => {
    const found = await PARSERS[kind](bytes, about)
    return IN_TEXTS.has(kind) ? { texts: textsOf(found) } : found
  }

/** What the thread answers with. */
export const HANDLERS = Object.fromEntries(
  (Object.keys(PARSERS) as (keyof AnswerKinds)[]).map((kind) => [kind, inThread(kind)])
) as { readonly [Kind in keyof AnswerKinds]: ReturnType<typeof inThread<Kind>> }

export const answerErrors = parserErrors(() => new DaemonError('E_SHUTTING_DOWN', 'the daemon is stopping'))

/** Reads what other machines sent: longer documents in a thread with a time limit. */
export class AnswerReader {
  readonly #thread: LimitedThread<AnswerCalls>

  constructor(clock: Pick<Clock, 'after'> = systemClock) {
    this.#thread = documentThread({
      url: workerUrl('./answer-worker', import.meta.url),
      name: 'svcd-answers',
      clock,
      errors: answerErrors
    })
  }

  /** @throws as the parser does; DaemonError `E_SHUTTING_DOWN` */
  readonly parse = async <Kind extends keyof AnswerKinds>(
    kind: Kind,
    bytes: Uint8Array,
    ...[about]: AboutOf<Kind> extends undefined ? [] : [AboutOf<Kind>]
  ): Promise<AnswerKinds[Kind]> => {
    if (bytes.length <= SHORT_DOCUMENT_BYTES) return PARSERS[kind](bytes, about as AboutOf<Kind>)
    try {
      const found = await this.#thread.call(kind, { bytes, about: about as AboutOf<Kind> })
      return (IN_TEXTS.has(kind) ? await valueIn((found as { texts: Texts }).texts) : found) as AnswerKinds[Kind]
    } catch (error) {
      throw withClass(error, { MetainfoError, ...(await ERRORS[kind]?.()) })
    }
  }

  close(): Promise<void> {
    return this.#thread.close()
  }
}

export type ParseAnswer = AnswerReader['parse']

/** For tests. */
export const parseHere: ParseAnswer = async (kind, bytes, ...[about]) => PARSERS[kind](bytes, about as never)

/** For a client of the hub. */
export const hubDocumentsIn =
  (parse: ParseAnswer): ReadHubDocument =>
  (kind, bytes, about) =>
    parse('hub', bytes, [kind, about]) as Promise<HubDocuments[typeof kind]['found']>

/** For a client of registries, and for layouts. */
export const ociDocumentsIn =
  (parse: ParseAnswer): ReadOciDocument =>
  (kind, bytes) =>
    parse('oci', bytes, kind) as Promise<OciDocuments[typeof kind]>
