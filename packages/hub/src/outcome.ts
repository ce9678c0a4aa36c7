import {
  DownloadError,
  type DownloadErrorKind,
  diskErrorOf,
  type Headers,
  headerOf,
  parseRetryAfter,
  type Response,
  rateLimitWaitMs
} from '@svc/internal-http'
import { type Endpoint, printableUrl } from './endpoint.ts'
import { HubError, type HubErrorCode, type HubErrorDetails, type HubErrorReason } from './errors.ts'

/** What identifies the bytes of an answer. */
export interface ResponseHead {
  readonly status: number
  readonly headers: Headers
}

export interface OutcomeContext {
  readonly endpoint: Endpoint
  readonly hasToken: boolean
  readonly tokenName: string
  readonly repoId: string
  readonly revision: string | undefined
  /** The requested file; undefined on API calls. */
  readonly path: string | undefined
  readonly nowMs: number
}

/** Explanations of error codes of the system and of undici. */
const SPOKEN: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'it refuses the connection',
  ECONNRESET: 'it cut the connection',
  ENOTFOUND: 'no such host',
  EAI_AGAIN: 'its name cannot be resolved now',
  ENETUNREACH: 'its network is unreachable',
  EHOSTUNREACH: 'it is unreachable',
  ETIMEDOUT: 'no answer in time',
  UND_ERR_SOCKET: 'it cut the connection',
  UND_ERR_CONNECT_TIMEOUT: 'no connection in time',
  UND_ERR_HEADERS_TIMEOUT: 'no answer in time',
  UND_ERR_BODY_TIMEOUT: 'it stopped sending',
  ERR_STALLED: 'it stopped sending',
  ERR_SLOW: 'it sends less than 1 KiB a second'
}

/** What a server that takes no more connections does to a new one. */
const CUT_OFF: ReadonlySet<unknown> = new Set(['ECONNRESET', 'UND_ERR_SOCKET'])

/**
 * A network failure below HTTP: refused, reset, stalled, no such host, TLS. Aborts, our own errors and those of the disk pass
 * unchanged.
 */
export function networkFailure(error: unknown, url: URL, context: OutcomeContext): unknown {
  if (error instanceof DownloadError || error instanceof HubError || diskErrorOf(error) !== undefined) return error
  const code = (error as { code?: unknown } | null)?.code
  const what =
    typeof code === 'string' ? (SPOKEN[code] ?? code) : error instanceof Error ? error.name : 'unknown failure'
  const subject = context.path === undefined ? '' : ` while fetching "${context.path}"`
  return new DownloadError(
    code !== undefined && CUT_OFF.has(code) ? 'busy' : 'retry',
    new HubError(
      'E_SOURCE_UNAVAILABLE',
      'unreachable',
      `no usable answer from ${url.origin}${subject} (${what}); check the network, the proxy settings and the endpoint`,
      { url: printableUrl(url), ...(context.path === undefined ? {} : { path: context.path }) },
      error
    )
  )
}

/** An answer that cannot be used; another attempt may bring a better one. */
export const badAnswer = (message: string, details: HubErrorDetails, cause?: unknown): DownloadError<HubError> =>
  new DownloadError('retry', new HubError('E_SOURCE_UNAVAILABLE', 'bad-answer', message, details, cause))

type Fail = (
  kind: DownloadErrorKind,
  code: HubErrorCode,
  reason: HubErrorReason,
  message: string,
  waitMs?: number
) => DownloadError<HubError>

/** What a status other than success or redirect means (the outcome table of docs/hub.md). */
export function statusFailure(
  head: Pick<Response, 'url' | 'status' | 'headers'>,
  context: OutcomeContext
): DownloadError<HubError> {
  const { url, status, headers } = head
  const { endpoint, nowMs, path } = context
  const details = { url: printableUrl(url), status, ...(path === undefined ? {} : { path }) }
  const fail: Fail = (kind, code, reason, message, waitMs) =>
    new DownloadError(kind, new HubError(code, reason, message, details), waitMs)
  const unavailable = (kind: DownloadErrorKind, reason: HubErrorReason, message: string, waitMs?: number) =>
    fail(kind, 'E_SOURCE_UNAVAILABLE', reason, `${url.origin} ${message}`, waitMs)

  if (status === 429) {
    const message = `${url.origin} limits the rate of requests; try again later, or set a token (it has a larger quota)`
    return fail('wait', 'E_RATE_LIMITED', 'rate-limited', message, rateLimitWaitMs(headers, nowMs))
  }
  if (status >= 500 || status === 408 || status === 425) {
    const waitMs = parseRetryAfter(headerOf(headers, 'retry-after'), nowMs)
    return unavailable(status === 503 ? 'busy' : 'retry', 'unreachable', `answers ${status}; try again later`, waitMs)
  }
  // at other hosts a refusal concerns only the URL's signature, not the right to the file.
  if (url.origin !== endpoint.origin && status >= 400)
    return unavailable('stale-url', 'unreachable', `refuses the address that the hub gave (${status}); try again later`)
  if (status === 401 || status === 403 || status === 451) return forbidden(head, context, details, fail)
  if (status === 404 || status === 410) return absent(head, context, fail)
  if (status === 416)
    return fail('wrong', 'E_NOT_IMPORTABLE', 'wrong-bytes', `"${path}" is shorter than the hub lists it`)
  return unavailable('final', 'bad-answer', `answers ${status} to a plain request; is the endpoint a model hub?`)
}

function forbidden(
  { status, headers }: ResponseHead,
  { endpoint, ...context }: OutcomeContext,
  details: HubErrorDetails,
  fail: Fail
): DownloadError<HubError> {
  const { repoId, hasToken, tokenName } = context
  const errorMessage = headerOf(headers, 'x-error-message') ?? ''
  const page = `${endpoint.base}/${repoId}`
  const refused = (reason: HubErrorReason, message: string) => fail('final', 'E_SOURCE_FORBIDDEN', reason, message)

  if (status === 451)
    return refused('legal', `the hub may not give out "${repoId}" for legal reasons; it cannot be imported from there`)
  if (headerOf(headers, 'x-error-code') === 'GatedRepo') return gatedFailure(page, context, details)
  if (/disabled/i.test(errorMessage))
    return refused('disabled', `the hub has disabled access to "${repoId}"; see ${page}`)
  if (hasToken && (status === 401 || /credential|token|password/i.test(errorMessage)))
    return refused(
      'token-rejected',
      `the hub rejects the token (for "${repoId}"): renew ${tokenName}, or remove it if the repository is public; ` +
        'a stale token is refused for public repositories too'
    )
  if (hasToken)
    return refused(
      'denied',
      `the account of ${tokenName} has no access to "${repoId}"; ask its owner, or use another token`
    )
  return refused(
    'hidden-or-absent',
    `"${repoId}" does not exist or is private (the hub does not tell which); check the name, or set ${tokenName} of an ` +
      'account that may read it'
  )
}

function absent(
  { status, headers }: ResponseHead,
  { endpoint, path, repoId, revision }: OutcomeContext,
  fail: Fail
): DownloadError<HubError> {
  const errorCode = headerOf(headers, 'x-error-code') ?? ''
  const unknown = (reason: HubErrorReason, message: string) => fail('final', 'E_UNKNOWN_REF', reason, message)
  if (path !== undefined && errorCode !== 'RepoNotFound' && errorCode !== 'RevisionNotFound') {
    const message = `the hub lists "${path}" of "${repoId}" but does not have it (${status}); try again later`
    return fail('retry', 'E_SOURCE_UNAVAILABLE', 'bad-answer', message)
  }
  if (errorCode === 'RevisionNotFound') {
    const named = revision === undefined ? 'default branch' : `revision "${revision}"`
    const advice = `name a branch, tag or commit that ${endpoint.base}/${repoId} shows`
    return unknown('no-such-revision', `"${repoId}" has no ${named}; ${advice}`)
  }
  const at = revision === undefined ? '' : ` at "${revision}"`
  const advice = 'check the spelling of org/name and of the revision'
  return unknown('no-such-repo', `the hub has no repository "${repoId}"${at}; ${advice}`)
}

/** @param sign what shows it, if not the hub's own word */
export function gatedFailure(
  page: string,
  { repoId, hasToken, tokenName }: Pick<OutcomeContext, 'repoId' | 'hasToken' | 'tokenName'>,
  details: HubErrorDetails,
  sign?: string
): DownloadError<HubError> {
  const gated = sign === undefined ? 'is gated' : `is gated (${sign})`
  const advice = hasToken
    ? `accept its conditions at ${page} with the account of ${tokenName}, and wait for approval if the repository requires it`
    : `accept its conditions at ${page}, then set ${tokenName}`
  return new DownloadError(
    'final',
    new HubError('E_SOURCE_FORBIDDEN', 'gated', `"${repoId}" ${gated}: ${advice}`, details)
  )
}
