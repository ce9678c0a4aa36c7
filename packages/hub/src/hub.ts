import { Gate } from '@svc/internal-concurrency'
import type { Dispatcher } from 'undici'
import { type DownloadOptions, downloadRange, type Lanes } from './download.ts'
import { type Endpoint, PUBLIC_ENDPOINT, parseEndpoint } from './endpoint.ts'
import { HubError } from './errors.ts'
import { DEFAULT_LIMITS, type HubLimits, type RetryTimings } from './limits.ts'
import { fetchListing, type HubListing, type ListingOptions } from './listing.ts'
import { createNet } from './net.ts'
import { type ProbeOptions, probeFile } from './probe.ts'
import { Buffers } from './range-writer.ts'
import { DEFAULT_TIMINGS } from './retry.ts'
import { createMemorySink, type HubSink } from './sink.ts'
import type { HubFile } from './tree.ts'

/** Which hub, with whose access, within which bounds. Without options: the public hub, anonymously. */
export interface HubOptions {
  /** Origin and path of the hub; the public one when absent. */
  readonly endpoint?: string
  /** Sent as Bearer token to the endpoint's own origin (scheme, host, port) and to nobody else. */
  readonly token?: string
  /** How messages call the token when they say what to do; default `a token`. */
  readonly tokenName?: string
  readonly userAgent?: string
  /** Takes the place of the built-in connection pools, proxy support and address checks included; not closed by `close`. */
  readonly dispatcher?: Dispatcher
  /**
   * The endpoint was named by a stranger: it, too, is never contacted on a loopback or private address, whatever its name is
   * resolved to when the connection is made.
   */
  readonly publicOnly?: boolean
  readonly limits?: Partial<HubLimits>
  readonly retry?: Partial<RetryTimings>
}

/**
 * A careful client of a model hub. Every method rejects with a HubError of these codes, or with the signal's reason:
 * `E_UNKNOWN_REF` no such repository or revision · `E_SOURCE_FORBIDDEN` gated, private, token rejected, disabled ·
 * `E_RATE_LIMITED` after waiting for up to five minutes · `E_SOURCE_UNAVAILABLE` unreachable or no sound answer, after six
 * tries without progress · `E_NOT_IMPORTABLE` a listing that is refused, or bytes that are not those listed.
 */
export interface Hub {
  readonly endpoint: string
  /**
   * The files of a repository at one commit. `revision` is a branch, tag, ref or commit; absent, the default branch.
   * Refused as a whole, before a byte of a file is fetched: paths that leave the tree, duplicates, a file that is also a
   * folder, impossible sizes or hashes, pages at another origin, too many entries.
   */
  listing(repo: string, revision?: string, options?: ListingOptions): Promise<HubListing>
  /**
   * Fills what `sink` lacks of the file, in bounded parallel ranges, through cuts, stalls, rate limits and expired
   * addresses. The bytes are placed, not verified: hash what the sink holds against `sha256` or `gitBlobSha1`, and on a
   * mismatch empty the sink and call again, once. Errors of the sink are passed on as they are.
   *
   * @throws TypeError when the sink is of another size than the file.
   */
  download(file: HubFile, sink: HubSink, options?: DownloadOptions): Promise<void>
  /**
   * `[start, end)` of a file (all of it by default), at most 64 MiB, not verified.
   *
   * @throws RangeError for bounds outside the file.
   */
  read(file: HubFile, range?: { start: number; end: number }, options?: DownloadOptions): Promise<Uint8Array>
  /**
   * Asks for one byte of a file: gating often shows nowhere else. A rate limit is waited for. Rejects with `E_SOURCE_FORBIDDEN` or
   * `E_RATE_LIMITED` only: whatever else is wrong, the download finds out.
   */
  probe(file: HubFile, options?: ProbeOptions): Promise<void>
  /** Ends what is under way, and closes the connections. */
  close(): Promise<void>
}

/** @throws HubError `E_INTERNAL`, reason `bad-request`: the endpoint is no http(s) URL, or the token holds white space. */
export function createHub(options: HubOptions = {}): Hub {
  const endpoint: Endpoint = parseEndpoint(options.endpoint ?? PUBLIC_ENDPOINT)
  const token = options.token === undefined || options.token === '' ? undefined : options.token
  if (token !== undefined && !/^[\x21-\x7e]+$/.test(token)) {
    throw new HubError('E_INTERNAL', 'bad-request', 'the hub token holds white space or characters beyond ASCII')
  }
  const limits: HubLimits = { ...DEFAULT_LIMITS, ...options.limits }
  const timings: RetryTimings = { ...DEFAULT_TIMINGS, ...options.retry }
  const userAgent = options.userAgent ?? 'svc-hub'
  const { dispatcher, tokenName = 'a token', publicOnly = false } = options
  const net = createNet({ endpoint, token, tokenName, userAgent, dispatcher, publicOnly, limits, timings })
  const lanes: Lanes = {
    large: new Gate(limits.ranges),
    small: new Gate(limits.smallFiles),
    buffers: new Buffers(limits.writeBytes)
  }
  const closing = new AbortController()
  const within = <T extends { readonly signal?: AbortSignal }>(given: T | undefined): T & { signal: AbortSignal } => {
    const signal = given?.signal ? AbortSignal.any([given.signal, closing.signal]) : closing.signal
    return { ...(given as T), signal }
  }

  return {
    endpoint: endpoint.base,
    listing: (repo, revision, given) => fetchListing(net, repo, revision, within(given)),
    download: (file, sink, given) => downloadRange(net, lanes, file, sink, 0, file.sizeBytes, within(given)),
    read: async (file, range = { start: 0, end: file.sizeBytes }, given = {}) => {
      const { start, end } = range
      if (!(start >= 0 && start <= end && end <= file.sizeBytes)) {
        throw new RangeError('the range is not within the file')
      }
      const memory = createMemorySink(end - start)
      // A window onto the file: everything outside of it counts as present, so that nothing of it is asked for.
      const window: HubSink = {
        sizeBytes: file.sizeBytes,
        ranges: () => memory.ranges().map(([from, to]) => [from + start, to + start] as const),
        write: (offset, bytes) => memory.write(offset - start, bytes),
        unmark: () => memory.unmark(0, memory.sizeBytes)
      }
      await downloadRange(net, lanes, file, window, start, end, within(given))
      return memory.bytes
    },
    probe: (file, given) => probeFile(net, file, within(given)),
    close: async () => {
      closing.abort(new HubError('E_SOURCE_UNAVAILABLE', 'unreachable', 'the hub client was closed'))
      await net.close()
    }
  }
}
