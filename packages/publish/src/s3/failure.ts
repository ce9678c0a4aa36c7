import { PublishError, type PublishErrorCode } from '../errors.ts'

interface Thrown {
  readonly name?: string
  readonly message?: string
  readonly Code?: string
  readonly code?: string
  readonly $metadata?: { readonly httpStatusCode?: number }
  readonly $response?: { readonly statusCode?: number }
}

const BY_NAME: Readonly<Record<string, PublishErrorCode>> = {
  NoSuchBucket: 'E_NOT_FOUND',
  RequestTimeTooSkewed: 'E_CLOCK',
  SlowDown: 'E_RATE_LIMITED',
  TooManyRequests: 'E_RATE_LIMITED',
  ServiceUnavailable: 'E_RATE_LIMITED',
  QuotaExceeded: 'E_NO_SPACE',
  InsufficientStorage: 'E_NO_SPACE',
  XMinioStorageFull: 'E_NO_SPACE',
  PermanentRedirect: 'E_BAD_TARGET',
  AuthorizationHeaderMalformed: 'E_BAD_TARGET',
  CredentialsProviderError: 'E_CREDENTIALS'
}

const BY_STATUS: Readonly<Record<number, PublishErrorCode>> = {
  301: 'E_BAD_TARGET',
  401: 'E_DENIED',
  403: 'E_DENIED',
  404: 'E_NOT_FOUND',
  429: 'E_RATE_LIMITED',
  507: 'E_NO_SPACE'
}

const HINTS: Partial<Record<PublishErrorCode, string>> = {
  E_CREDENTIALS: 'set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE',
  E_DENIED: 'the key needs permission to get, put and delete objects there, and to list the bucket',
  E_CLOCK: 'the clock of this machine differs from that of the store; set it',
  E_BAD_TARGET: 'the bucket is in another region: name it with --region',
  E_RATE_LIMITED: 'the store is throttling requests; run the same command later to resume'
}

/** The HTTP status of an error response; undefined if there was no response. */
export const errorStatusOf = (error: unknown): number | undefined =>
  (error as Thrown).$metadata?.httpStatusCode ?? (error as Thrown).$response?.statusCode

/** S3's error code, such as `NoSuchBucket`. */
export const errorNameOf = (error: unknown): string => (error as Thrown).Code ?? (error as Thrown).name ?? ''

/** Maps a failed request to a {@link PublishError}. Errors of this package and aborts pass through unchanged. */
export function s3Error(error: unknown, doing: string, signal?: AbortSignal): unknown {
  if (signal?.aborted === true) return signal.reason
  if (error instanceof PublishError) return error
  const status = errorStatusOf(error)
  const name = errorNameOf(error)
  const code = BY_NAME[name] ?? BY_STATUS[status ?? 0] ?? 'E_UNAVAILABLE'
  const { message, code: system } = error as Thrown
  // the client's messages about unparsable error bodies are useless to users
  const said = [name === 'Error' ? system : name, status].filter((part) => part !== undefined && part !== '').join(', ')
  const hint = HINTS[code] === undefined ? '' : `; ${HINTS[code]}`
  const short = message === undefined || message === 'UnknownError' || message === name ? '' : `: ${firstLine(message)}`
  return new PublishError(code, `cannot ${doing} (${said})${short}${hint}`, error)
}

const firstLine = (text: string): string => text.split('\n')[0]!.slice(0, 300)
