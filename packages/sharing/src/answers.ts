import type { Clock } from '@svc/internal-clock'
import { type DocumentKind, type DocumentParsers, DocumentThread, workerUrl } from '@svc/internal-workers'
import { LibraryError } from '@svc/library/parts'
import {
  type CheckedPieceLayers,
  MetainfoError,
  parseInfo,
  parsePieceLayers,
  parseTorrent,
  type TorrentInfo
} from '@svc/metainfo'
import type { Sha256Digest } from '@svc/ref'

/** What is read of the documents of peers and webseeds, by their kind. */
export interface AnswerKinds {
  /** Whether the listing of a publication says that a model is withheld: the pinned manifest, and the listing's place, for messages. */
  readonly withheld: DocumentKind<boolean, [about: { readonly pin: Sha256Digest; readonly at: string }]>
  /** The info dictionary. */
  readonly info: DocumentKind<TorrentInfo>
  /** That of a torrent file. */
  readonly torrent: DocumentKind<TorrentInfo>
  readonly pieceLayers: DocumentKind<CheckedPieceLayers, [of: Pick<TorrentInfo, 'files' | 'pieceLength'>]>
}

/** The parsers; that of listings loads the library that has it. */
export const ANSWERS: DocumentParsers<AnswerKinds> = {
  parsers: {
    withheld: async (bytes, { pin, at }) => {
      const { models } = (await import('@svc/publish')).parseListing(bytes, at)
      return models.some(({ manifest, withheld }) => manifest === pin && withheld === true)
    },
    info: parseInfo,
    torrent: (bytes) => parseTorrent(bytes).info,
    pieceLayers: parsePieceLayers
  },
  errors: (kind) =>
    kind === 'withheld' ? import('@svc/publish').then(({ PublishError }) => ({ PublishError })) : { MetainfoError },
  closed: () => new LibraryError('E_CLOSED', 'the swarm client is closed')
}

/** Reads what peers and webseeds sent. */
export class AnswerReader extends DocumentThread<AnswerKinds> {
  constructor(clock?: Pick<Clock, 'after'>) {
    const url = workerUrl('./answer-worker', import.meta.url)
    super(ANSWERS, { url, name: 'svc-swarm-documents', ...(clock && { clock }) })
  }
}

export type ParseAnswer = AnswerReader['parse']
