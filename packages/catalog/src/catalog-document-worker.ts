import { serveDocuments } from '@svc/internal-workers'
import { DOCUMENTS } from './catalog-documents.ts'

serveDocuments(DOCUMENTS)
