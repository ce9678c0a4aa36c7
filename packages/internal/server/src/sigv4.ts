import { createHash, createHmac } from 'node:crypto'
import { encodeSegment } from '@svc/internal-http'

/** An access key of an object store. Never logged, and never part of a message. */
export interface AccessKey {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string | undefined
}

/** A request to sign: GET, without a body. */
export interface SignedRequest {
  readonly url: URL
  /** Headers to sign, too, by lower-case name. `host` may be omitted. */
  readonly headers?: Readonly<Record<string, string>>
  readonly region: string
  readonly key: AccessKey
  readonly at: Date
}

const EMPTY_SHA256 = createHash('sha256').digest('hex')

/**
 * The headers that authenticate a GET: AWS Signature Version 4 in a header, service `s3`, as object stores of all
 * vendors support it. They are valid for this URL and these headers, for 15 minutes by the server's clock. Pure.
 */
export function signGet({ url, headers = {}, region, key, at }: SignedRequest): Record<string, string> {
  const time = timeOf(at)
  const added: Record<string, string> = {
    'x-amz-content-sha256': EMPTY_SHA256,
    'x-amz-date': time,
    ...(key.sessionToken !== undefined && { 'x-amz-security-token': key.sessionToken })
  }
  const all = Object.entries({ ...headers, host: url.host, ...added })
  const { pathname: path, searchParams } = url
  const parts = { method: 'GET', path, query: [...searchParams], headers: all, payload: EMPTY_SHA256, region, time }
  const { signature, scope, names } = signatureOf(parts, key.secretAccessKey)
  return {
    ...added,
    authorization: `AWS4-HMAC-SHA256 Credential=${key.accessKeyId}/${scope}, SignedHeaders=${names}, Signature=${signature}`
  }
}

/** The parts of a request that a signature covers. */
interface SignedParts {
  readonly method: string
  /** Percent-encoded. */
  readonly path: string
  /** Decoded. */
  readonly query: readonly (readonly [string, string])[]
  /** By lower-case name. */
  readonly headers: readonly (readonly [string, string])[]
  /** The SHA-256 of the body in hexadecimal digits, or a placeholder for it. */
  readonly payload: string
  readonly region: string
  /** `YYYYMMDDTHHMMSSZ` */
  readonly time: string
}

/** In hexadecimal digits, with its scope and the names of the signed headers. Pure. */
export function signatureOf(
  { method, path, query, headers, payload, region, time }: SignedParts,
  secretAccessKey: string
): { readonly signature: string; readonly scope: string; readonly names: string } {
  const day = time.slice(0, 8)
  const all = headers.map(([name, value]) => [name, value.trim().replace(/ +/g, ' ')] as const).sort(byFirst)
  const names = all.map(([name]) => name).join(';')
  const canonical = [
    method,
    path.split('/').map(canonicalText).join('/'),
    canonicalQuery(query),
    ...all.map(([name, value]) => `${name}:${value}`),
    '',
    names,
    payload
  ].join('\n')
  const scope = `${day}/${region}/s3/aws4_request`
  const text = ['AWS4-HMAC-SHA256', time, scope, createHash('sha256').update(canonical).digest('hex')].join('\n')
  const signing = [day, region, 's3', 'aws4_request'].reduce<string | Buffer>(
    (secret, word) => hmac(secret, word),
    `AWS4${secretAccessKey}`
  )
  return { signature: hmac(signing, text).toString('hex'), scope, names }
}

/** A time in the format of signatures. */
export const timeOf = (at: Date): string => at.toISOString().replace(/[-:]|\.\d{3}/g, '')

const hmac = (key: string | Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest()

const byFirst = ([a]: readonly [string, string], [b]: readonly [string, string]): number => (a < b ? -1 : a > b ? 1 : 0)

/** Encodes everything but RFC 3986's unreserved characters, and nothing twice. */
function canonicalText(encoded: string): string {
  let text = encoded
  try {
    text = decodeURIComponent(encoded)
  } catch {
    // a lone % stands for itself
  }
  return encodeSegment(text)
}

const canonicalQuery = (query: SignedParts['query']): string =>
  query
    .map(
      ([name, value]) => [canonicalText(encodeURIComponent(name)), canonicalText(encodeURIComponent(value))] as const
    )
    .sort((a, b) => byFirst(a, b) || byFirst([a[1], ''], [b[1], '']))
    .map(([name, value]) => `${name}=${value}`)
    .join('&')
