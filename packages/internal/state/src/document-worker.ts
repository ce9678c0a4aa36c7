import { RECOGNITION_NICE, serveCalls, yieldToOthers } from '@svc/internal-workers'
import { type DocumentCalls, documentErrors, PARSERS } from './document-calls.ts'

yieldToOthers(RECOGNITION_NICE)

serveCalls<DocumentCalls>(PARSERS, { errors: documentErrors, oneByOne: true })
