import { errnoOf } from '@svc/internal-errors'
import { Backoff, isIdentity, type Response, type RetryWait } from '@svc/internal-http'
import type { HubDocuments, HubInfo } from './documents.ts'
import { infoUrl, isRepoId, isRevision, printableUrl, refsUrl, treeUrl } from './endpoint.ts'
import { HubError, refusedListing } from './errors.ts'
import type { Net } from './net.ts'
import { badAnswer, gatedFailure, networkFailure, type OutcomeContext, statusFailure } from './outcome.ts'
import { type HubFile, ListingCheck, UntoldHash } from './tree.ts'

/** All files of a repository at one commit, validated: safe names, no duplicates, well-formed sizes and hashes. */
export interface HubListing extends HubInfo {
  readonly files: readonly HubFile[]
}

/** Options of a listing. `onWaiting` is called before each wait for a rate limit or a retry. */
export interface ListingOptions {
  readonly signal?: AbortSignal
  readonly onWaiting?: (waiting: RetryWait) => void
  /** Longest total wait for a rate limit; default: that of the hub object. */
  readonly maxRateWaitMs?: number
  /** Attempts without progress before giving up; default: those of the hub object. */
  readonly tries?: number
  /** Called with the bytes of each answer, also of one that is too large. */
  readonly onBytes?: (bytes: number) => void
}

/** What was read of an answer. */
export interface HubAnswer<Kind extends keyof HubDocuments> {
  readonly value: HubDocuments[Kind]['found']
  readonly bytes: number
  readonly response: Response
}

/** Fetches and validates a whole listing; an invalid one is refused entirely. Errors: see `Hub.listing`. */
export async function fetchListing(
  net: Net,
  repo: string,
  revision: string | undefined,
  options: ListingOptions
): Promise<HubListing> {
  const info = await fetchInfo(net, repo, revision, options)
  const check = new ListingCheck(info, net.limits.entries)
  const seen = new Set<string>()
  let bytes = 0
  let url: URL | undefined = new URL(treeUrl(net.endpoint, info.repoId, info.commit))
  while (url) {
    if (seen.has(url.href)) throw refusedListing(info.repoId, 'its pages form a loop')
    if (seen.size >= net.limits.pages) throw refusedListing(info.repoId, `it has more than ${net.limits.pages} pages`)
    seen.add(url.href)
    const { repoId, gated } = info
    const about = { repoId, gated, maxEntries: net.limits.entries }
    let answer: HubAnswer<'page'>
    try {
      answer = await fetchDocument(net, url, info, options, 'page', about)
    } catch (error) {
      throw error instanceof UntoldHash ? untoldFailure(net, info, error) : error
    }
    bytes += answer.bytes
    if (bytes > net.limits.listingBytes)
      throw refusedListing(info.repoId, `it has more than ${net.limits.listingBytes} bytes`)
    await check.add(answer.value)
    url = nextPage(answer.response, url, net, info.repoId)
  }
  return { ...info, files: await check.finish() }
}

/** Without a hash no byte can be checked: a gated repository has to be opened first, another listing is wrong. */
function untoldFailure(net: Net, info: HubInfo, { details: { path, isMasked }, message }: UntoldHash): HubError {
  if (!info.gated && !isMasked) return refusedListing(info.repoId, message)
  return gatedFailure(`${net.endpoint.base}/${info.repoId}`, net.about(info), { path }, message).error
}

/** The commits that branches and tags of a repository name. Errors: see `Hub.namedCommits`. */
export async function fetchNamedCommits(net: Net, repo: string, options: ListingOptions): Promise<ReadonlySet<string>> {
  return new Set((await fetchRefs(net, repo, options)).commits)
}

/** Names of the branches of a repository, sorted. Errors: see `Hub.branches`. */
export const fetchBranches = async (net: Net, repo: string, options: ListingOptions): Promise<readonly string[]> =>
  (await fetchRefs(net, repo, options)).branches

async function fetchRefs(net: Net, repo: string, options: ListingOptions): Promise<HubDocuments['refs']['found']> {
  requireNames(repo, undefined)
  const url = new URL(refsUrl(net.endpoint, repo))
  return (await fetchDocument(net, url, { repoId: repo }, options, 'refs', { repoId: repo })).value
}

function requireNames(repo: string, revision: string | undefined): void {
  if (!isRepoId(repo)) {
    throw new HubError(
      'E_UNKNOWN_REF',
      'bad-request',
      'write a repository of the hub as org/name; only the oldest are just name'
    )
  }
  if (revision !== undefined && !isRevision(revision)) {
    throw new HubError(
      'E_UNKNOWN_REF',
      'bad-request',
      'a revision must be a branch, tag or commit of at most 255 characters'
    )
  }
}

/** What a revision points to. Errors: see `Hub.info`. */
export async function fetchInfo(
  net: Net,
  repo: string,
  revision: string | undefined,
  options: ListingOptions
): Promise<HubInfo> {
  requireNames(repo, revision)
  const ask = (name: string | undefined) => {
    const of = { repoId: repo, commit: name }
    return fetchDocument(net, new URL(infoUrl(net.endpoint, repo, name)), of, options, 'info', { repoId: repo })
  }
  let answer: HubAnswer<'info'>
  try {
    answer = await ask(revision ?? 'main')
  } catch (error) {
    // the default branch may have another name: the call without a revision finds it.
    if (revision !== undefined || !(error instanceof HubError && error.reason === 'no-such-revision')) throw error
    answer = await ask(undefined)
  }
  const { isUnsaid, ...info } = answer.value
  const restricted = info.private || info.gated || (isUnsaid && net.hasToken)
  return { ...info, restricted, ...leftOutIn(answer.response) }
}

function leftOutIn(response: Response): Pick<HubListing, 'leftOut'> {
  const said = response.header('x-svc-left-out') ?? ''
  return /^[1-9]\d{0,5}$/.test(said) ? { leftOut: Number(said) } : {}
}

/** The target of `Link: <url>; rel="next"` (RFC 8288), which must be at the hub's own origin. */
export function nextPage(response: Response, base: URL, net: Net, repoId: string): URL | undefined {
  const link = response.header('link') ?? ''
  for (const [, target, parameters] of link.matchAll(/<([^<>]*)>((?:\s*;\s*[^,<>]*)*)/g)) {
    if (!/;\s*rel\s*=\s*(?:"(?:[^"]*\s)?next(?:\s[^"]*)?"|next)\s*(?:;|$)/i.test(parameters ?? '')) continue
    const url = URL.parse(target ?? '', base.href)
    if (url === null || url.origin !== net.endpoint.origin || url.username + url.password !== '')
      throw refusedListing(repoId, 'its next page is on another host than the hub; set the endpoint to that host')
    url.hash = ''
    return url
  }
  return undefined
}

/** What is read of an answer of the hub's API, with retries. @throws also as the reader of `kind` does */
export async function fetchDocument<Kind extends keyof HubDocuments>(
  net: Net,
  url: URL,
  { repoId, commit }: { readonly repoId: string; readonly commit?: string | undefined },
  options: ListingOptions,
  kind: Kind,
  about: HubDocuments[Kind]['about']
): Promise<HubAnswer<Kind>> {
  const { signal, maxRateWaitMs = net.timings.maxRateWaitMs, tries = net.timings.tries } = options
  const timings = { ...net.timings, maxRateWaitMs, tries }
  const backoff = new Backoff(timings, options.onWaiting)
  for (;;) {
    try {
      const { bytes, response } = await tryBytes(net, url, net.about({ repoId, commit }), options)
      try {
        return { value: await net.readDocument(kind, bytes, about), bytes: bytes.length, response }
      } catch (error) {
        signal?.throwIfAborted()
        if (!(error instanceof SyntaxError)) throw error
        const what = 'does not respond with JSON; is the endpoint a model hub?'
        throw badAnswer(`${url.origin} ${what}`, { url: printableUrl(url) }, error)
      }
    } catch (error) {
      await backoff.after(error, signal)
    }
  }
}

async function tryBytes(
  net: Net,
  url: URL,
  context: OutcomeContext,
  { signal, onBytes }: ListingOptions
): Promise<{ readonly bytes: Uint8Array; readonly response: Response }> {
  let response: Response | undefined
  try {
    response = await net.walk({ url, headers: { accept: 'application/json' }, signal, sameOriginOnly: true })
    if (response.status !== 200) throw statusFailure(response, context)
    if (!isIdentity(response.headers)) {
      const what = 'encodes its response, although a plain one was requested'
      throw badAnswer(`${url.origin} ${what}`, { url: printableUrl(url) })
    }
    const bytes = await response.bytes(net.limits.jsonBytes)
    onBytes?.(bytes.length)
    return { bytes, response }
  } catch (error) {
    void response?.discard()
    signal?.throwIfAborted()
    if (errnoOf(error) === 'ERR_TOO_LARGE') {
      onBytes?.(net.limits.jsonBytes)
      throw refusedListing(context.repoId, `a response has more than ${net.limits.jsonBytes} bytes`)
    }
    throw networkFailure(error, url, context)
  }
}
