import { HUB_DOCUMENT_ERRORS, HUB_DOCUMENTS, type HubDocuments } from '@svc/hub'
import { type DocumentKind, type DocumentParsers, DocumentThread, workerUrl } from '@svc/internal-workers'
import { LibraryError } from '@svc/library/parts'

type HubKinds = {
  readonly [Kind in keyof HubDocuments]: DocumentKind<HubDocuments[Kind]['found'], [about: HubDocuments[Kind]['about']]>
}

export const DOCUMENTS: DocumentParsers<HubKinds> = {
  parsers: HUB_DOCUMENTS,
  json: Object.keys(HUB_DOCUMENTS) as (keyof HubDocuments)[],
  errors: () => HUB_DOCUMENT_ERRORS,
  closed: () => new LibraryError('E_CLOSED', 'the hub client is closed')
}

/** Reads the answers of a hub. */
export class HubDocumentReader extends DocumentThread<HubKinds> {
  constructor() {
    super(DOCUMENTS, { url: workerUrl('./hub-document-worker', import.meta.url), name: 'svc-hub-documents' })
  }
}
