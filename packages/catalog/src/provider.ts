import { type Clock, within } from '@svc/internal-clock'
import type { HttpClient } from '@svc/internal-http'
import { LibraryError } from '@svc/library/parts'
import type { ParseCatalogDocument } from './catalog-documents.ts'
import type { ListedTorrent } from './listing.ts'

const MAX_LISTING_BYTES = 4 << 20
const MAX_RECORD_BYTES = 16 << 20
const TIMEOUT_MS = 30_000

/**
 * A community catalog of model torrents, in the public provider's text format (spec cat.2, cat.8). Magnets from callers are never accepted (spec cat.1).
 */
export class CatalogProvider {
  readonly #endpoint: string
  readonly #web: HttpClient
  readonly #clock: Pick<Clock, 'after'>
  readonly #parse: ParseCatalogDocument

  /** `endpoint`: http or https URL, with or without a trailing slash. */
  constructor(endpoint: string, web: HttpClient, clock: Pick<Clock, 'after'>, parse: ParseCatalogDocument) {
    this.#endpoint = endpoint.replace(/\/+$/, '')
    this.#web = web
    this.#clock = clock
    this.#parse = parse
  }

  /** @throws LibraryError `E_SOURCE_UNAVAILABLE`. An empty response or 404 gives no entries. */
  async search(terms: string, signal?: AbortSignal): Promise<readonly ListedTorrent[]> {
    const bytes = await this.#get(`/s/${encodeURIComponent(terms)}`, MAX_LISTING_BYTES, signal)
    return bytes === undefined ? [] : this.#parse('listing', bytes)
  }

  /**
   * The provider's own SHA-256 per path, for models that are gone from the hub; undefined if it has none.
   * @throws LibraryError `E_SOURCE_UNAVAILABLE`.
   */
  async record(repo: string, signal?: AbortSignal): Promise<ReadonlyMap<string, string> | undefined> {
    const path = repo.split('/').map(encodeURIComponent).join('/')
    const bytes = await this.#get(`/${path}`, MAX_RECORD_BYTES, signal)
    const digests = bytes && (await this.#parse('digestList', bytes))
    return digests && new Map(digests)
  }

  async #get(path: string, maxBytes: number, signal: AbortSignal | undefined): Promise<Uint8Array | undefined> {
    const unavailable = (what: string, cause?: unknown) =>
      new LibraryError('E_SOURCE_UNAVAILABLE', `the catalog ${what}`, { advice: { to: 'check-catalog' }, cause })
    try {
      return await within(this.#clock, TIMEOUT_MS, signal, async (limited) => {
        const url = new URL(this.#endpoint + path)
        const answer = await this.#web.send({ url, signal: limited, policy: 'owner' })
        if (answer.status === 200) return await answer.bytes(maxBytes)
        await answer.discard()
        if (answer.status === 404) return undefined
        throw unavailable(`answered ${answer.status}`)
      })
    } catch (error) {
      if (error instanceof LibraryError || signal?.aborted) throw error
      if ((error as { code?: unknown }).code === 'ERR_TOO_LARGE') throw unavailable((error as Error).message, error)
      throw unavailable('could not be reached', error)
    }
  }
}
