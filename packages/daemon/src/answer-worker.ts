import { RECOGNITION_NICE, serveCalls, yieldToOthers } from '@svc/internal-workers'
import { type AnswerCalls, answerErrors, HANDLERS } from './answers.ts'

yieldToOthers(RECOGNITION_NICE)

serveCalls<AnswerCalls>(HANDLERS, { errors: answerErrors, oneByOne: true })
