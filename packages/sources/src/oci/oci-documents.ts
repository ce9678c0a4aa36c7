import { type DocumentKind, type DocumentParsers, DocumentThread, workerUrl } from '@svc/internal-workers'
import { LibraryError } from '@svc/library/parts'
import { OCI_DOCUMENT_ERRORS, OCI_DOCUMENTS, type OciDocuments, type ReadOciDocument } from '@svc/oci'

type OciKinds = { readonly [Kind in keyof OciDocuments]: DocumentKind<OciDocuments[Kind]> }

export const DOCUMENTS: DocumentParsers<OciKinds> = {
  parsers: OCI_DOCUMENTS,
  json: Object.keys(OCI_DOCUMENTS) as (keyof OciDocuments)[],
  errors: () => OCI_DOCUMENT_ERRORS,
  closed: () => new LibraryError('E_CLOSED', 'the source is closed')
}

/** Reads the documents of registries and layouts. */
export class OciDocumentReader extends DocumentThread<OciKinds> {
  readonly read = this.parse as ReadOciDocument

  constructor() {
    super(DOCUMENTS, { url: workerUrl('./oci-document-worker', import.meta.url), name: 'svc-oci-documents' })
  }
}
