import { resolve } from 'node:path'
import { PublishError } from './errors.ts'

/** Where a publication goes. */
export type Place =
  | { readonly kind: 'folder' /** Absolute. */; readonly path: string }
  | { readonly kind: 's3'; readonly bucket: string /** Empty, or with a slash at its end. */; readonly prefix: string }

/** Keys of S3 have at most so many bytes; the layout's own part is short. */
const MAX_PREFIX_BYTES = 512

/**
 * Reads `s3://bucket/prefix`; everything else is the path of a folder, from `cwd` on.
 * @throws PublishError `E_BAD_TARGET`
 */
export function parsePlace(text: string, cwd: string): Place {
  const wrong = (what: string): PublishError => new PublishError('E_BAD_TARGET', `${text}: ${what}`)
  if (!/^s3:/i.test(text)) {
    const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(text)?.[1]
    if (scheme !== undefined)
      throw wrong(`models are published to folders and to s3://bucket/prefix, not to ${scheme}:`)
    if (text === '' || text.includes('\0')) throw wrong('this is no path')
    return { kind: 'folder', path: resolve(cwd, text) }
  }
  const parts = /^s3:\/\/([^/]*)(?:\/(.*))?$/is.exec(text)
  const [, bucket = '', rest = ''] = parts ?? []
  if (parts === null || !/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(bucket) || bucket.includes('..')) {
    throw wrong(
      'a bucket is written s3://bucket/prefix; its name has 3 to 63 lower-case letters, digits, dots and dashes'
    )
  }
  const segments = rest.replace(/\/+$/, '').split('/')
  const prefix = rest.replace(/\/+$/, '')
  if (prefix === '') return { kind: 's3', bucket, prefix: '' }
  // clients that take a URL apart would go elsewhere
  if (segments.some((segment) => ['', '.', '..'].includes(segment)))
    throw wrong('the prefix has an empty part, "." or ".."')
  if (/[\u0000-\u001f\u007f\\]/.test(prefix)) throw wrong('the prefix has control characters or a backslash')
  if (Buffer.byteLength(prefix) > MAX_PREFIX_BYTES) throw wrong(`the prefix has more than ${MAX_PREFIX_BYTES} bytes`)
  return { kind: 's3', bucket, prefix: `${prefix}/` }
}
