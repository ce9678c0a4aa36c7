import { serveDocuments } from '@svc/internal-workers'
import { ANSWERS } from './answers.ts'

serveDocuments(ANSWERS)
