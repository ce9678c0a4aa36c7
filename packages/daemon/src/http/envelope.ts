import type { ErrorCode, ErrorEnvelope } from '@svc/client/protocol'

/** `Content-Type` of all responses except blobs. */
export const JSON_TYPE = 'application/json; charset=utf-8'

/** The form of every error response (spec err.1). */
export const envelope = (code: ErrorCode, message: string, candidates?: readonly string[]): ErrorEnvelope => ({
  error: { code, message, ...(candidates !== undefined && { candidates: [...candidates] }) }
})
