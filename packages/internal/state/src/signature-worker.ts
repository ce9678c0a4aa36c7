import { RECOGNITION_NICE, serveCalls, yieldToOthers } from '@svc/internal-workers'
import { SignatureError, verifySignature } from '@svc/signature'
import type { SignatureCalls } from './signature-calls.ts'

function verify({ bytes, trusts, nowMs }: SignatureCalls['verify']['request']): SignatureCalls['verify']['response'] {
  try {
    const [found] = trusts.map((trust) => verifySignature(bytes, trust, new Date(nowMs)))
    return { model: found!.model }
  } catch (error) {
    if (!(error instanceof SignatureError)) throw error
    return { refused: error.message }
  }
}

yieldToOthers(RECOGNITION_NICE)

serveCalls<SignatureCalls>({ verify }, { oneByOne: true })
