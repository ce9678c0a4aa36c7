import type { ErrorCode, ErrorEnvelope } from '@svc/client/protocol'

/** `Content-Type` of everything that is not a blob's bytes. */
export const JSON_TYPE = 'application/json; charset=utf-8'

/** The one shape of every error (spec err.1). */
export const envelope = (code: ErrorCode, message: string, candidates?: readonly string[]): ErrorEnvelope => ({
  error: { code, message, ...(candidates !== undefined && { candidates: [...candidates] }) }
})
