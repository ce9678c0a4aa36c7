import { serveDocuments } from '@svc/internal-workers'
import { DOCUMENTS } from './oci-documents.ts'

serveDocuments(DOCUMENTS)
