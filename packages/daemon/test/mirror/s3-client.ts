// A daemon with an S3 mirror, and a client that signs.

import { readFileSync } from 'node:fs'
import { type IncomingHttpHeaders, request } from 'node:http'
import { dirname } from 'node:path'
import { systemClock } from '@svc/internal-clock'
import { signatureOf, timeOf } from '@svc/internal-server'

export const KEY = { id: 'READER', secret: 'a-secret-of-many-characters' }

export interface S3Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
  readonly text: string
  /** The code of an error. */
  readonly code: string | undefined
  readonly isCut: boolean
}

export interface S3Ask {
  readonly method?: string
  readonly headers?: Record<string, string>
}

/** A client of the mirror of the daemon with this socket. */
export function s3Of(socketPath: string): (path: string, ask?: S3Ask) => Promise<S3Answer> {
  const { s3MirrorAddress } = JSON.parse(readFileSync(`${dirname(socketPath)}/runtime.json`, 'utf8'))
  return (path, ask) => askS3(s3MirrorAddress, path, ask)
}

/** The time by the machine's clock, which the daemon uses, too. */
export const inMinutes = (minutes: number): Date => new Date(systemClock.now() + minutes * 60_000)

export function askS3(address: string, path: string, { method = 'GET', headers = {} }: S3Ask = {}): Promise<S3Answer> {
  const [host, port] = address.split(':')
  return new Promise((resolve, reject) => {
    request({ host, port, path, method, agent: false, headers }, (answer) => {
      const chunks: Buffer[] = []
      answer.on('data', (chunk: Buffer) => chunks.push(chunk))
      const done = (isCut: boolean): void => {
        const body = Buffer.concat(chunks)
        const text = body.toString()
        const code = /<Code>(\w+)<\/Code>/.exec(text)?.[1]
        resolve({ status: answer.statusCode!, headers: answer.headers, body, text, code, isCut })
      }
      answer.once('end', () => done(false)).once('error', () => done(true))
    })
      .on('error', reject)
      .end()
  })
}

const EMPTY = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'

/** Headers of a signed request. */
export function signed(
  host: string,
  path: string,
  { method = 'GET', at = inMinutes(0), key = KEY, headers = {}, more = {} } = {} as {
    readonly method?: string
    readonly at?: Date
    readonly key?: typeof KEY
    /** Signed. */
    readonly headers?: Record<string, string>
    /** Sent, but not signed. */
    readonly more?: Record<string, string>
  }
): Record<string, string> {
  const { pathname, searchParams } = new URL(`http://${host}${path}`)
  const time = timeOf(at)
  const all = { ...headers, host, 'x-amz-content-sha256': EMPTY, 'x-amz-date': time }
  const parts = { method, path: pathname, query: [...searchParams], headers: Object.entries(all), payload: EMPTY, time }
  const { signature, scope, names } = signatureOf({ ...parts, region: 'eu-north-1' }, key.secret)
  const authorization = `AWS4-HMAC-SHA256 Credential=${key.id}/${scope}, SignedHeaders=${names}, Signature=${signature}`
  return { ...all, ...more, authorization }
}

/** A presigned URL. */
export function presigned(
  host: string,
  path: string,
  { at = inMinutes(0), expires = '300', key = KEY, method = 'GET' } = {} as {
    readonly at?: Date
    readonly expires?: string
    readonly key?: typeof KEY
    readonly method?: string
  }
): string {
  const time = timeOf(at)
  const url = new URL(`http://${host}${path}`)
  const scope = `${time.slice(0, 8)}/us-east-1/s3/aws4_request`
  for (const [name, value] of Object.entries({
    'X-Amz-Algorithm': 'AWS4-HMAC-SHA256',
    'X-Amz-Credential': `${key.id}/${scope}`,
    'X-Amz-Date': time,
    'X-Amz-Expires': expires,
    'X-Amz-SignedHeaders': 'host'
  }))
    url.searchParams.append(name, value)
  const parts = { method, path: url.pathname, query: [...url.searchParams], headers: [['host', host]] as const, time }
  const { signature } = signatureOf({ ...parts, payload: 'UNSIGNED-PAYLOAD', region: 'us-east-1' }, key.secret)
  url.searchParams.append('X-Amz-Signature', signature)
  return url.pathname + url.search
}
