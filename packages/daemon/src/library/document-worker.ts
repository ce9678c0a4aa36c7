import { serveCalls, yieldToOthers } from '@svc/internal-workers'
import { RECOGNITION_NICE } from '../thread-priority.ts'
import { type DocumentCalls, documentErrors, PARSERS } from './document-calls.ts'

yieldToOthers(RECOGNITION_NICE)

serveCalls<DocumentCalls>(PARSERS, { errors: documentErrors, oneByOne: true })
