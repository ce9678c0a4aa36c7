import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { signatureOf } from '@svc/internal-server'
import { S3Error } from './s3-answers.ts'

/** Secrets by the ID of their key. */
export type S3Keys = ReadonlyMap<string, string>

/** How far a client's clock may be from ours. */
const SKEW_MS = 15 * 60_000
const MAX_EXPIRES_SECONDS = 7 * 86_400
const ALGORITHM = 'AWS4-HMAC-SHA256'

/** The signature of a request. */
interface Signed {
  readonly credential: string
  readonly names: readonly string[]
  readonly signature: string
  /** `YYYYMMDDTHHMMSSZ` */
  readonly time: string
  readonly payload: string
  /** How long after `time` a presigned URL is valid. */
  readonly expiresSeconds?: number
}

/**
 * Checks a request's signature, AWS Signature Version 4 in a header or in the query. It must cover `host` and all
 * `x-amz-` headers. @throws S3Error
 */
export function requireSignature(request: IncomingMessage, url: string, keys: S3Keys, nowMs: number): void {
  const mark = url.indexOf('?')
  const path = mark < 0 ? url : url.slice(0, mark)
  const query = [...new URLSearchParams(mark < 0 ? '' : url.slice(mark + 1))]
  const { authorization } = request.headers
  const isInQuery = query.some(([name]) => /^x-amz-(?:algorithm|credential|signature)$/i.test(name))
  if (authorization === undefined && !isInQuery) throw notSigned(query)
  if (authorization !== undefined && isInQuery) throw denied('a request must be signed exactly once')
  const signed = isInQuery ? ofQuery(query) : ofHeader(request, authorization!)
  const { credential, names, signature, time, payload } = signed

  const [id = '', day, region = '', ...rest] = credential.split('/')
  if (rest.join('/') !== 's3/aws4_request' || day !== time.slice(0, 8) || !/^[A-Za-z0-9-]{1,64}$/.test(region))
    throw new S3Error('AuthorizationHeaderMalformed', 'the credential is ID/YYYYMMDD/REGION/s3/aws4_request')
  const secret = keys.get(id)
  if (secret === undefined) throw new S3Error('InvalidAccessKeyId', 'the access key is unknown')
  requireTime(signed, nowMs)

  const headers = names.map((name) => [name, headerOf(request, name)] as const)
  const unsigned = Object.keys(request.headersDistinct).filter((name) => name.startsWith('x-amz-'))
  if (!names.includes('host') || unsigned.some((name) => !names.includes(name)))
    throw denied('host and all headers x-amz-* must be signed')
  const covered = query.filter(([name]) => !isInQuery || name !== 'X-Amz-Signature')
  const parts = { method: request.method!, path, query: covered, headers, payload, region, time }
  if (!isSame(signature, signatureOf(parts, secret).signature))
    throw new S3Error('SignatureDoesNotMatch', 'the signature does not match this request and this key')
}

function ofHeader(request: IncomingMessage, authorization: string): Signed {
  const [, credential, names, signature] =
    /^AWS4-HMAC-SHA256 +Credential=([^, ]+) *, *SignedHeaders=([^, ]+) *, *Signature=([0-9a-f]{64})$/.exec(
      authorization
    ) ?? []
  if (credential === undefined)
    throw new S3Error('AuthorizationHeaderMalformed', `a signature must be ${ALGORITHM}, in the usual form`)
  const [time, payload] = [headerOf(request, 'x-amz-date'), headerOf(request, 'x-amz-content-sha256')]
  return { credential, names: namesIn(names!), signature: signature!, time, payload }
}

function ofQuery(query: readonly (readonly [string, string])[]): Signed {
  const malformed = (what: string): S3Error => new S3Error('AuthorizationQueryParametersError', what)
  const of = (name: string): string => {
    const values = query.filter(([each]) => each === name)
    if (values.length !== 1) throw malformed(`a presigned URL must have ${name} exactly once`)
    return values[0]![1]
  }
  if (of('X-Amz-Algorithm') !== ALGORITHM) throw malformed(`X-Amz-Algorithm is ${ALGORITHM}`)
  const expires = of('X-Amz-Expires')
  const expiresSeconds = /^\d{1,6}$/.test(expires) ? Number(expires) : 0
  if (expiresSeconds < 1 || expiresSeconds > MAX_EXPIRES_SECONDS)
    throw malformed('X-Amz-Expires is a number of seconds, a week at most')
  return {
    credential: of('X-Amz-Credential'),
    names: namesIn(of('X-Amz-SignedHeaders')),
    signature: of('X-Amz-Signature'),
    time: of('X-Amz-Date'),
    payload: 'UNSIGNED-PAYLOAD',
    expiresSeconds
  }
}

function requireTime({ time, expiresSeconds }: Signed, nowMs: number): void {
  const at = Date.parse(time.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'))
  if (!/^\d{8}T\d{6}Z$/.test(time) || Number.isNaN(at)) throw denied('the time of a signature must be YYYYMMDDTHHMMSSZ')
  if (expiresSeconds !== undefined && nowMs > at + expiresSeconds * 1000) throw denied('the request has expired')
  if (at > nowMs + SKEW_MS || (expiresSeconds === undefined && at < nowMs - SKEW_MS))
    throw new S3Error('RequestTimeTooSkewed', 'the clocks of client and server differ by more than 15 minutes')
}

const namesIn = (list: string): readonly string[] => [...new Set(list.split(';'))]

function headerOf({ headersDistinct }: IncomingMessage, name: string): string {
  const values = Object.hasOwn(headersDistinct, name) ? headersDistinct[name] : undefined
  if (values === undefined) throw denied('a header that the signature covers is missing')
  return values.join(',')
}

/** By default, boto3 presigns in the old way. */
const notSigned = (query: readonly (readonly [string, string])[]): S3Error =>
  query.some(([name]) => name === 'AWSAccessKeyId')
    ? new S3Error('InvalidRequest', `signatures here are ${ALGORITHM} (boto3: signature_version="s3v4")`)
    : denied('this bucket requires a key')

const denied = (why: string): S3Error => new S3Error('AccessDenied', why)

/** In constant time. */
function isSame(a: string, b: string): boolean {
  const hashed = (text: string): Buffer => createHash('sha256').update(text).digest()
  return timingSafeEqual(hashed(a), hashed(b))
}
