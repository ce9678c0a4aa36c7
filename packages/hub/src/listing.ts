import { errnoOf } from '@svc/internal-errors'
import {
  Backoff,
  isIdentity,
  isObject,
  JsonExcessError,
  type JsonOptions,
  own,
  parseJson,
  type Response,
  type RetryWait
} from '@svc/internal-http'
import { infoUrl, isRepoId, isRevision, printableUrl, refsUrl, treeUrl } from './endpoint.ts'
import { HubError, refusedListing } from './errors.ts'
import type { Net } from './net.ts'
import { badAnswer, gatedFailure, networkFailure, type OutcomeContext, statusFailure } from './outcome.ts'
import { type HubFile, ListingCheck, UntoldHash } from './tree.ts'

/** A repository at the commit that a revision points to. */
export interface HubInfo {
  /** In the hub's own spelling; after a rename it differs from the requested one. */
  readonly repoId: string
  /** The commit that the revision pointed to: 40 hex characters. */
  readonly commit: string
  readonly private: boolean
  readonly gated: boolean
  /**
   * True when these bytes required a token, or may have: private or gated, or a token was sent and the hub does not
   * say.
   */
  readonly restricted: boolean
  /** As the repository's card names it, e.g. `apache-2.0`; absent where the hub does not say. */
  readonly license?: string
  /** How many files of the commit a mirror says it lacks; absent for none, or if it does not say. */
  readonly leftOut?: number
}

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

/** Some hubs send a whole listing in one page. */
const PAGE: JsonOptions = { values: 250_000 }
/** The rest of the answer is as long as a listing. */
const INFO: JsonOptions = { only: ['sha', 'id', 'modelId', 'private', 'gated', 'tags'] }

interface JsonAnswer {
  readonly value: unknown
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
    const answer = await fetchJson(net, url, info, options, PAGE)
    bytes += answer.bytes
    if (bytes > net.limits.listingBytes)
      throw refusedListing(info.repoId, `it has more than ${net.limits.listingBytes} bytes`)
    try {
      check.add(answer.value)
    } catch (error) {
      throw error instanceof UntoldHash ? untoldFailure(net, info, error) : error
    }
    url = nextPage(answer.response, url, net, info.repoId)
  }
  return { ...info, files: check.finish() }
}

/** Without a hash no byte can be checked: a gated repository has to be opened first, another listing is wrong. */
function untoldFailure(net: Net, info: HubInfo, { path, isMasked, message }: UntoldHash): HubError {
  if (!info.gated && !isMasked) return refusedListing(info.repoId, message)
  return gatedFailure(`${net.endpoint.base}/${info.repoId}`, net.about(info), { path }, message).error
}

/** The commits that branches and tags of a repository name. Errors: see `Hub.namedCommits`. */
export async function fetchNamedCommits(net: Net, repo: string, options: ListingOptions): Promise<ReadonlySet<string>> {
  const value = await fetchRefs(net, repo, options)
  return new Set(
    (['branches', 'tags'] as const)
      .flatMap((kind) => refsIn(value, kind, repo))
      .flatMap((ref) => {
        const commit = own(ref, 'targetCommit')
        return typeof commit === 'string' && SHA1.test(commit) ? [commit] : []
      })
  )
}

/** Names of the branches of a repository, sorted. Errors: see `Hub.branches`. */
export async function fetchBranches(net: Net, repo: string, options: ListingOptions): Promise<readonly string[]> {
  const names = refsIn(await fetchRefs(net, repo, options), 'branches', repo).map((ref) => own(ref, 'name'))
  return names.filter((name): name is string => typeof name === 'string' && isRevision(name)).sort()
}

async function fetchRefs(net: Net, repo: string, options: ListingOptions): Promise<unknown> {
  requireNames(repo, undefined)
  const { value } = await fetchJson(net, new URL(refsUrl(net.endpoint, repo)), { repoId: repo }, options)
  return value
}

/** Some hubs send no list of tags. */
function refsIn(value: unknown, kind: 'branches' | 'tags', repo: string): readonly Readonly<Record<string, unknown>>[] {
  const refs = isObject(value) ? own(value, kind) : undefined
  if (refs === undefined && kind === 'tags') return []
  if (!Array.isArray(refs)) throw refusedListing(repo, `the hub sent no list of its ${kind}`)
  return (refs as unknown[]).filter(isObject)
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
  const ask = (name: string | undefined) =>
    fetchJson(net, new URL(infoUrl(net.endpoint, repo, name)), { repoId: repo, commit: name }, options, INFO)
  let answer: JsonAnswer
  try {
    answer = await ask(revision ?? 'main')
  } catch (error) {
    // the default branch may have another name: the call without a revision finds it.
    if (revision !== undefined || !(error instanceof HubError && error.reason === 'no-such-revision')) throw error
    answer = await ask(undefined)
  }
  const info = isObject(answer.value) ? answer.value : {}
  const commit = own(info, 'sha')
  if (typeof commit !== 'string' || !SHA1.test(commit))
    throw refusedListing(repo, 'the hub does not say which commit the revision points to')
  const repoId = own(info, 'id') ?? own(info, 'modelId') ?? repo
  if (!isRepoId(repoId)) throw refusedListing(repo, 'the hub gives it an impossible name')
  const isPrivate = own(info, 'private')
  const gated = own(info, 'gated')
  const unsaid = isPrivate === undefined || gated === undefined
  const flags = { private: isPrivate === true, gated: gated !== undefined && gated !== false && gated !== null }
  const restricted = flags.private || flags.gated || (unsaid && net.hasToken)
  return { repoId, commit, ...flags, restricted, ...licenseIn(own(info, 'tags')), ...leftOutIn(answer.response) }
}

const MAX_TAGS = 1_000

/** The tags of a repository; none where the hub gives no list. */
export const tagsIn = (tags: unknown): readonly unknown[] => (Array.isArray(tags) ? tags.slice(0, MAX_TAGS) : [])

export function licenseIn(tags: unknown): Pick<HubInfo, 'license'> {
  const named = tagsIn(tags).map((tag) => /^license:([\w.+-]{1,64})$/.exec(typeof tag === 'string' ? tag : '')?.[1])
  const license = named.find((each) => each !== undefined)
  return license === undefined ? {} : { license }
}

function leftOutIn(response: Response): Pick<HubListing, 'leftOut'> {
  const said = response.header('x-svc-left-out') ?? ''
  return /^[1-9]\d{0,5}$/.test(said) ? { leftOut: Number(said) } : {}
}

const SHA1 = /^[0-9a-f]{40}$/

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

/** An answer of the hub's API, with retries. */
export async function fetchJson(
  net: Net,
  url: URL,
  { repoId, commit }: { readonly repoId: string; readonly commit?: string | undefined },
  options: ListingOptions,
  bounds?: JsonOptions
): Promise<JsonAnswer> {
  const { signal, maxRateWaitMs = net.timings.maxRateWaitMs, tries = net.timings.tries } = options
  const timings = { ...net.timings, maxRateWaitMs, tries }
  const backoff = new Backoff(timings, options.onWaiting)
  for (;;) {
    try {
      return await tryJson(net, url, net.about({ repoId, commit }), options, bounds)
    } catch (error) {
      await backoff.after(error, signal)
    }
  }
}

async function tryJson(
  net: Net,
  url: URL,
  context: OutcomeContext,
  { signal, onBytes }: ListingOptions,
  bounds: JsonOptions | undefined
): Promise<JsonAnswer> {
  const unusable = (what: string, cause?: unknown): Error =>
    badAnswer(`${url.origin} ${what}`, { url: printableUrl(url) }, cause)
  let response: Response | undefined
  try {
    response = await net.walk({ url, headers: { accept: 'application/json' }, signal, sameOriginOnly: true })
    if (response.status !== 200) throw statusFailure(response, context)
    if (!isIdentity(response.headers)) throw unusable('encodes its response, although a plain one was requested')
    const bytes = await response.bytes(net.limits.jsonBytes)
    onBytes?.(bytes.length)
    return { value: parseJson(bytes, bounds), bytes: bytes.length, response }
  } catch (error) {
    void response?.discard()
    signal?.throwIfAborted()
    if (errnoOf(error) === 'ERR_TOO_LARGE') {
      onBytes?.(net.limits.jsonBytes)
      throw refusedListing(context.repoId, `a response has more than ${net.limits.jsonBytes} bytes`)
    }
    if (error instanceof JsonExcessError && error.bound !== 'depth')
      throw refusedListing(context.repoId, `a response has ${error.message}`)
    if (error instanceof SyntaxError || errnoOf(error) === 'ERR_ENCODING_INVALID_ENCODED_DATA')
      throw unusable('does not respond with JSON; is the endpoint a model hub?', error)
    throw networkFailure(error, url, context)
  }
}
