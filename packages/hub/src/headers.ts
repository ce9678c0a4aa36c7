import type { IncomingHttpHeaders } from 'node:http'
import type { ResponseHead } from './exchange.ts'

/** The value of a header; repeated ones are joined as HTTP allows. */
export function header(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name]
  return Array.isArray(value) ? value.join(', ') : value
}

/** True if the body is not encoded: no Content-Encoding but `identity`. */
export function isIdentity(head: ResponseHead): boolean {
  const encoding = header(head.headers, 'content-encoding')
  return encoding === undefined || /^\s*(?:identity)?\s*$/i.test(encoding)
}
