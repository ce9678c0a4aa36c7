import { Gate } from '@svc/internal-concurrency'
import { type HttpClientOptions, Paces } from '@svc/internal-http'
import { fetchAccount } from './account.ts'
import { type HubAccount, type HubInfo, type ReadHubDocument, readHubDocumentHere } from './documents.ts'
import { type DownloadOptions, downloadRange, type RequestGates } from './download.ts'
import { type Endpoint, PUBLIC_ENDPOINT, parseEndpoint } from './endpoint.ts'
import { HubError } from './errors.ts'
import { DEFAULT_LIMITS, DEFAULT_TIMINGS, type HubLimits, type RetryTimings } from './limits.ts'
import {
  fetchBranches,
  fetchInfo,
  fetchListing,
  fetchNamedCommits,
  type HubListing,
  type ListingOptions
} from './listing.ts'
import { Net } from './net.ts'
import { type ProbeOptions, probeFile } from './probe.ts'
import { type HubHits, type HubQuery, searchHub } from './search.ts'
import { createMemorySink, type HubSink } from './sink.ts'
import type { HubFile } from './tree.ts'
import { Cas } from './xet/cas.ts'
import { type DeltaOutcome, type OlderVersion, reuseOlder } from './xet/delta.ts'

/** Which hub to use, with which access and limits. Without options: the public hub, anonymously. */
export interface HubOptions {
  /** Origin and path of the hub; default: the public one. */
  readonly endpoint?: string
  /** Sent as a Bearer token to the endpoint's own origin (scheme, host, port) and to no other. */
  readonly token?: string
  /** The token's name in messages that suggest a fix; default `a token`. */
  readonly tokenName?: string
  readonly userAgent?: string
  /** Replaces the built-in connection pools, including proxy support and address checks; `close` does not close it. */
  readonly dispatcher?: NonNullable<HttpClientOptions['dispatcher']>
  /**
   * For an endpoint that a server has named: where that server is. The endpoint is contacted only at addresses that such a server may
   * name, whatever its name resolves to at that moment (SECURITY.md). By default the endpoint is the owner's.
   */
  readonly policy?: 'machine' | 'network' | 'internet'
  /** Niceness of the threads that fetch large files, 0 (default) to 19. On Linux only: elsewhere a thread has no priority of its own. */
  readonly threadNice?: number
  /** Reads the answers of the hub's API, e.g. in a thread. Default: on the thread of the caller, which long ones hold up. */
  readonly readDocument?: ReadHubDocument
  /** A limit that other receivers of the program share. Default: none. */
  readonly downloads?: HttpClientOptions['downloads']
  readonly limits?: Partial<HubLimits>
  readonly retry?: Partial<RetryTimings>
}

/**
 * A careful client of a model hub. Every method rejects with a HubError of these codes, or with the signal's reason:
 * `E_UNKNOWN_REF` no such repository or revision · `E_SOURCE_FORBIDDEN` gated, private, token rejected, disabled ·
 * `E_RATE_LIMITED` after waiting for up to five minutes · `E_SOURCE_UNAVAILABLE` unreachable, or no valid response in
 * six attempts without progress · `E_NOT_IMPORTABLE` a listing that was refused, or bytes that do not match it.
 */
export interface Hub {
  readonly endpoint: string
  /** Whose token this object sends. @throws HubError `E_SOURCE_FORBIDDEN`, reason `token-rejected` */
  account(options?: ListingOptions): Promise<HubAccount>
  /** The commit that a branch, tag, ref or commit points to; default: the default branch. */
  info(repo: string, revision?: string, options?: ListingOptions): Promise<HubInfo>
  /**
   * The files of a repository at one commit. `revision` is a branch, tag, ref or commit; default: the default branch.
   * The listing is refused as a whole, before any file is fetched, for: paths that leave the tree, duplicates, a file
   * that is also a folder, impossible sizes or hashes, pages at another origin, too many entries.
   */
  listing(repo: string, revision?: string, options?: ListingOptions): Promise<HubListing>
  /** One page of the repositories that fit a query, the most downloaded first. */
  search(query: HubQuery, options?: ListingOptions): Promise<HubHits>
  /** The commits that the branches and tags of a repository name now; pull requests and conversions are neither. */
  namedCommits(repo: string, options?: ListingOptions): Promise<ReadonlySet<string>>
  /** Names of the branches of a repository, sorted. @throws HubError as `namedCommits` */
  branches(repo: string, options?: ListingOptions): Promise<readonly string[]>
  /**
   * Fetches what `sink` lacks of the file, in bounded parallel ranges, and continues through broken connections,
   * stalls, rate limits and expired addresses. The bytes are stored but not verified: hash the sink's content, compare
   * it with `sha256` or `gitBlobSha1`, and on a mismatch empty the sink and call again, once. Errors of the sink are
   * passed on unchanged.
   *
   * @throws TypeError when the sizes of sink and file differ.
   */
  download(file: HubFile, sink: HubSink, options?: DownloadOptions): Promise<void>
  /**
   * Called before `download` (spec hub.9). Copies into `sink` what an older version of the file shares with it, as the hub's storage (Xet)
   * describes both, and fetches chunks where they cost less than the bytes. Takes three requests; none, and no call of `findOlder`, for small
   * files and listings without `xetHash`. An invalid answer ends it, and the download fetches the rest. An answer that lies makes wrong
   * bytes, which only their hash shows: do not call it again after a mismatch. Errors of the sink are passed on unchanged.
   */
  reuse(
    file: HubFile,
    findOlder: () => Promise<OlderVersion | undefined>,
    sink: HubSink,
    options?: DownloadOptions
  ): Promise<DeltaOutcome>
  /**
   * Bytes `[start, end)` of a file (by default all of it), at most 64 MiB, not verified.
   *
   * @throws RangeError for a range outside the file.
   */
  read(file: HubFile, range?: { start: number; end: number }, options?: DownloadOptions): Promise<Uint8Array>
  /**
   * Requests one byte of a file, since often nothing else shows that it is gated. Waits out a rate limit. Rejects with
   * `E_SOURCE_FORBIDDEN` or `E_RATE_LIMITED` only; other failures are left to the download.
   */
  probe(file: HubFile, options?: ProbeOptions): Promise<void>
  /** Aborts running calls and closes the connections. */
  close(): Promise<void>
}

/**
 * @throws HubError `E_INTERNAL`, reason `bad-request`: the endpoint is not an http(s) URL, or the token contains white
 *   space.
 */
export function createHub(options: HubOptions = {}): Hub {
  const endpoint: Endpoint = parseEndpoint(options.endpoint ?? PUBLIC_ENDPOINT)
  const token = options.token === undefined || options.token === '' ? undefined : options.token
  if (token !== undefined && !/^[\x21-\x7e]+$/.test(token))
    throw new HubError('E_INTERNAL', 'bad-request', 'the hub token contains white space or characters beyond ASCII')
  const limits: HubLimits = { ...DEFAULT_LIMITS, ...options.limits }
  const timings: RetryTimings = { ...DEFAULT_TIMINGS, ...options.retry }
  const userAgent = options.userAgent ?? 'svc-hub'
  const {
    dispatcher,
    tokenName = 'a token',
    policy,
    threadNice = 0,
    downloads,
    readDocument = readHubDocumentHere
  } = options
  const shown = { token, tokenName, userAgent }
  const net = new Net({ endpoint, ...shown, dispatcher, policy, threadNice, downloads, limits, timings, readDocument })
  const lanes: RequestGates = {
    large: new Gate(limits.ranges),
    small: new Gate(limits.smallFiles),
    paces: new Paces({ first: limits.firstRequests, most: limits.ranges + limits.smallFiles })
  }
  const shared = { net, lanes, cas: new Cas(net) }
  const closing = new AbortController()
  const within = <T extends { readonly signal?: AbortSignal }>(given: T | undefined): T & { signal: AbortSignal } => {
    const signal = given?.signal ? AbortSignal.any([given.signal, closing.signal]) : closing.signal
    return { ...(given as T), signal }
  }

  return {
    endpoint: endpoint.base,
    account: (given) => fetchAccount(net, within(given)),
    info: (repo, revision, given) => fetchInfo(net, repo, revision, within(given)),
    listing: (repo, revision, given) => fetchListing(net, repo, revision, within(given)),
    search: (query, given) => searchHub(net, query, within(given)),
    namedCommits: (repo, given) => fetchNamedCommits(net, repo, within(given)),
    branches: (repo, given) => fetchBranches(net, repo, within(given)),
    download: (file, sink, given) =>
      downloadRange(shared, file, sink, { start: 0, end: file.sizeBytes }, within(given)),
    reuse: (file, findOlder, sink, given) => reuseOlder(shared, file, findOlder, sink, within(given)),
    read: (file, range, given) => readRange(shared, file, range, within(given)),
    probe: (file, given) => probeFile(net, file, within(given)),
    close: async () => {
      closing.abort(new HubError('E_SOURCE_UNAVAILABLE', 'unreachable', 'the hub client was closed'))
      await net.close()
    }
  }
}

/** @throws RangeError for a range outside the file */
async function readRange(
  shared: Parameters<typeof downloadRange>[0],
  file: HubFile,
  range = { start: 0, end: file.sizeBytes },
  options: DownloadOptions & { readonly signal: AbortSignal }
): Promise<Uint8Array> {
  const { start, end } = range
  if (!(start >= 0 && start <= end && end <= file.sizeBytes)) throw new RangeError('the range is not within the file')
  const memory = createMemorySink(end - start)
  // a view of the range: everything outside it counts as present, so that it is not requested.
  const window: HubSink = {
    sizeBytes: file.sizeBytes,
    ranges: () => memory.ranges().map(([from, to]) => [from + start, to + start] as const),
    write: (offset, bytes) => memory.write(offset - start, bytes),
    unmark: () => memory.unmark(0, memory.sizeBytes)
  }
  await downloadRange(shared, file, window, range, options)
  return memory.bytes
}
