import { serveDocuments } from '@svc/internal-workers'
import { DOCUMENTS } from './hub-documents.ts'

serveDocuments(DOCUMENTS)
