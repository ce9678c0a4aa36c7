import { LRUCache } from 'lru-cache'

/** Limit of the responses and their keys together. */
const MAX_BYTES = 32 << 20

type Render = () => Promise<unknown>

/** Caches long responses that are the same for every client, as they are sent, so that slow clients share the same bytes. */
export class Rendered {
  readonly #known: LRUCache<string, Buffer, Render>

  constructor(maxBytes = MAX_BYTES) {
    this.#known = new LRUCache({
      maxSize: maxBytes,
      sizeCalculation: (bytes, key) => key.length + bytes.length,
      // a waiting caller gets its response even if the cache evicts it meanwhile
      ignoreFetchAbort: true,
      fetchMethod: async (_key, _stale, { context }) => Buffer.from(JSON.stringify(await context()))
    })
  }

  /** `render` is called once for all concurrent requests. @throws its errors */
  get(key: string, render: Render): Promise<Buffer> {
    return this.#known.forceFetch(key, { context: render })
  }
}
