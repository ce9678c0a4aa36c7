import { serveDocuments } from '@svc/internal-workers'
import { DOCUMENTS } from './document-reader.ts'

serveDocuments(DOCUMENTS)
