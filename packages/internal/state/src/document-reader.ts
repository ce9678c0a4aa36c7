import type { Clock } from '@svc/internal-clock'
import { type DocumentKind, type DocumentParsers, DocumentThread, workerUrl } from '@svc/internal-workers'
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
  readonly index: DocumentKind<ModelIndex>
  readonly manifest: DocumentKind<Manifest>
  readonly storedManifest: DocumentKind<Manifest>
  readonly companions: DocumentKind<Companions>
  /** The files outside the model that a list of shards names. */
  readonly outsideNames: DocumentKind<readonly string[]>
  /** The folders of a model's parts. */
  readonly parts: DocumentKind<readonly string[]>
}

/** The parsers of documents in canonical form throw ManifestError. */
export const DOCUMENTS: DocumentParsers<DocumentKinds> = {
  parsers: {
    index: parseIndex,
    manifest: parseManifest,
    storedManifest: parseStoredManifest,
    companions: parseCompanions,
    outsideNames: outsideNamesIn,
    parts: partsIn
  },
  errors: () => ({ ManifestError }),
  closed: () => new LibraryError('E_CLOSED', 'the library is closed')
}

/** Reads documents. @throws ManifestError as the parser does; LibraryError `E_CLOSED` */
export class DocumentReader extends DocumentThread<DocumentKinds> {
  constructor(clock?: Pick<Clock, 'after'>) {
    const url = workerUrl('./document-worker', import.meta.url)
    super(DOCUMENTS, { url, name: 'svc-documents', ...(clock && { clock }) })
  }
}
