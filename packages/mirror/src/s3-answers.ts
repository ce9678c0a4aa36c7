import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { HARDENING } from '@svc/internal-server'

/** The one bucket (spec add.58). */
export const BUCKET = 'models'
/** Nothing here depends on it; clients insist on one. */
export const REGION = 'us-east-1'

/** The error codes of S3 that are used here. */
const STATUS = {
  AccessDenied: 403,
  AuthorizationHeaderMalformed: 400,
  AuthorizationQueryParametersError: 400,
  InternalError: 500,
  InvalidAccessKeyId: 403,
  InvalidArgument: 400,
  InvalidRange: 416,
  InvalidRequest: 400,
  InvalidURI: 400,
  MethodNotAllowed: 405,
  NoSuchBucket: 404,
  NoSuchKey: 404,
  NotImplemented: 501,
  PreconditionFailed: 412,
  RequestTimeTooSkewed: 403,
  ServiceUnavailable: 503,
  SignatureDoesNotMatch: 403,
  SlowDown: 503
} as const
type S3Code = keyof typeof STATUS

/** S3's codes for the refusals of listeners and mirrors. */
const CODES: Readonly<Partial<Record<string, S3Code>>> = {
  E_INTERNAL: 'InternalError',
  E_METHOD_NOT_ALLOWED: 'MethodNotAllowed',
  E_NO_SPACE: 'ServiceUnavailable',
  E_NOT_FOUND: 'NoSuchKey',
  E_PRECONDITION_FAILED: 'PreconditionFailed',
  E_RANGE_INVALID: 'InvalidRange',
  E_RATE_LIMITED: 'SlowDown',
  E_SOURCE_UNAVAILABLE: 'ServiceUnavailable'
}

/** A refusal with a code of S3. */
export class S3Error extends Error {
  override readonly name = 'S3Error'
  readonly code: S3Code

  constructor(code: S3Code, message: string) {
    super(message)
    this.code = code
  }
}

export function refuseS3(
  response: ServerResponse,
  { code, message }: Pick<S3Error, 'code' | 'message'>,
  headers: OutgoingHttpHeaders = {},
  status: number = STATUS[code]
): void {
  const body = document('Error', element('Code', code) + element('Message', message))
  sendXml(response, body, status, headers)
}

/** Refuses as listeners do, in the form of S3. */
export function refuseAsS3(
  response: ServerResponse,
  status: number,
  code: string,
  message: string,
  headers: OutgoingHttpHeaders = {}
): void {
  const known = CODES[code] ?? (status === 403 ? 'AccessDenied' : 'InvalidRequest')
  refuseS3(response, { code: known, message }, headers, CODES[code] === undefined ? status : STATUS[known])
}

export function sendXml(response: ServerResponse, text: string, status = 200, headers: OutgoingHttpHeaders = {}): void {
  const body = Buffer.from(text)
  const type = { 'Content-Type': 'application/xml', 'Content-Length': body.length }
  response.writeHead(status, { ...HARDENING, ...headers, ...type })
  response.end(response.req.method === 'HEAD' ? undefined : body)
}

const NAMESPACE = 'http://s3.amazonaws.com/doc/2006-03-01/'

/** @param content {@link element | elements}, which are escaped */
export const document = (root: string, content: string): string =>
  `<?xml version="1.0" encoding="UTF-8"?>\n<${root}${root === 'Error' ? '' : ` xmlns="${NAMESPACE}"`}>${content}</${root}>`

export const element = (name: string, text: string | number | boolean): string =>
  `<${name}>${escaped(`${text}`)}</${name}>`

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  '\r': '&#13;'
}

/** Replaces the characters that XML cannot write at all. */
const escaped = (text: string): string =>
  text
    .toWellFormed()
    .replace(/[&<>"\r]/g, (mark) => ENTITIES[mark]!)
    .replace(/[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/g, '\ufffd')
