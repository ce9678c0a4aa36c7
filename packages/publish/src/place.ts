import { resolve } from 'node:path'
import { PublishError } from './errors.ts'

/** The destination of a publication. */
export type Place =
  | { readonly kind: 'folder' /** Absolute. */; readonly path: string }
  | { readonly kind: 's3'; readonly bucket: string /** Empty, or ends in a slash. */; readonly prefix: string }

/** S3 allows keys of 1024 bytes; half of that is left for the paths below the prefix. */
const MAX_PREFIX_BYTES = 512

/**
 * Parses `s3://bucket/prefix`; anything else is the path of a folder, relative to `cwd`.
 * @throws PublishError `E_BAD_TARGET`
 */
export function parsePlace(text: string, cwd: string): Place {
  const wrong = (what: string): PublishError => new PublishError('E_BAD_TARGET', `${text}: ${what}`)
  if (!/^s3:/i.test(text)) {
    const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(text)?.[1]
    if (scheme !== undefined) throw wrong(`${scheme}: is not supported; publish to a folder or to s3://bucket/prefix`)
    if (text === '' || text.includes('\0')) throw wrong('not a valid path')
    return { kind: 'folder', path: resolve(cwd, text) }
  }
  const parts = /^s3:\/\/([^/]*)(?:\/(.*))?$/is.exec(text)
  const [, bucket = '', rest = ''] = parts ?? []
  if (parts === null || !/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(bucket) || bucket.includes('..')) {
    throw wrong(
      'write buckets as s3://bucket/prefix; bucket names have 3 to 63 lower-case letters, digits, dots and dashes'
    )
  }
  const prefix = rest.replace(/\/+$/, '')
  if (prefix === '') return { kind: 's3', bucket, prefix: '' }
  // HTTP clients normalize such URLs and would request a different key
  if (prefix.split('/').some((segment) => ['', '.', '..'].includes(segment)))
    throw wrong('the prefix has an empty segment, "." or ".."')
  if (/[\u0000-\u001f\u007f\\]/.test(prefix)) throw wrong('the prefix contains control characters or a backslash')
  if (Buffer.byteLength(prefix) > MAX_PREFIX_BYTES) throw wrong(`the prefix is longer than ${MAX_PREFIX_BYTES} bytes`)
  return { kind: 's3', bucket, prefix: `${prefix}/` }
}
