import {
  BodyRangeError,
  diskErrorOf,
  HttpClient,
  type HttpClientOptions,
  RedirectError,
  type Response
} from '@svc/internal-http'
import { type DialPolicy, isRefusedAddress, policyFrom } from '@svc/internal-net'
import { OciError } from './errors.ts'

/** For a whole document: at a byte now and then, an import would never end. */
const DOCUMENT_MS = 120_000
const MAX_REDIRECTS = 5

export interface RegistryRequest {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PATCH' | 'PUT'
  readonly url: URL
  /** The headers for each URL, also those of redirects, which a GET follows. */
  readonly headers: (url: URL) => Readonly<Record<string, string>>
  readonly body?: Uint8Array | AsyncIterable<Uint8Array> | undefined
  readonly signal?: AbortSignal | undefined
}

/** HTTP with a registry, the storage that it redirects to, and its login server. */
export class RegistryClient {
  readonly #http: HttpClient
  readonly policyOf: (url: URL) => Promise<DialPolicy>

  constructor(registry: URL, options: HttpClientOptions) {
    this.policyOf = policyFrom(registry)
    this.#http = new HttpClient(options)
  }

  /** @throws OciError `E_UNAVAILABLE`; an error of our disk as it is; on abort the signal's reason */
  async send({ method, url, headers, body, signal }: RegistryRequest): Promise<Response> {
    let at = url
    try {
      const hop = async (next: URL) => {
        at = next
        return { headers: headers(next), policy: await this.policyOf(next) }
      }
      if (method !== 'GET') return await this.#http.send({ method, url, body, signal, ...(await hop(url)) })
      return (await this.#http.follow(url, { signal, redirects: MAX_REDIRECTS, hop })) as Response
    } catch (cause) {
      signal?.throwIfAborted()
      throw unavailable(cause, `${at.host} cannot be reached`)
    }
  }

  async close(): Promise<void> {
    await this.#http.close()
  }
}

/** Maps a failure to one of the registry's; errors of this package and of our disk pass unchanged. */
export function unavailable(cause: unknown, what: string): unknown {
  if (cause instanceof OciError || diskErrorOf(cause) !== undefined) return cause
  const { code, message } = cause as { readonly code?: unknown; readonly message?: unknown }
  const text = isRefusedAddress(cause)
    ? `${what}, since the registry names it: ${message}`
    : cause instanceof RedirectError
      ? `the registry ${message}, which is refused`
      : cause instanceof BodyRangeError
        ? `the registry ${message}`
        : `${what}: ${typeof code === 'string' ? code : message}`
  return new OciError('E_UNAVAILABLE', text, {}, cause)
}

/** Reads a small body. @throws OciError `E_UNAVAILABLE` when it exceeds `maxBytes` or the connection breaks */
export async function readBody(response: Response, maxBytes: number, withinMs = DOCUMENT_MS): Promise<Uint8Array> {
  try {
    return await response.bytes(maxBytes, withinMs)
  } catch (cause) {
    throw unavailable(cause, `the response of ${response.url.host} cannot be read`)
  }
}
