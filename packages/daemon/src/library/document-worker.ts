import { serveCalls, yieldToOthers } from '@svc/internal-workers'
import { RECOGNITION_NICE } from '../thread-priority.ts'
import { type DocumentCalls, documentErrors, HANDLERS } from './document-calls.ts'

yieldToOthers(RECOGNITION_NICE)

serveCalls<DocumentCalls>(HANDLERS, { errors: documentErrors, oneByOne: true })
