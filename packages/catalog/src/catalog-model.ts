import type { CatalogChoice, CatalogModel } from '@svc/library'
import { type ListableSource, namesOfSet } from '@svc/library/parts'
import { Catalog } from './catalog.ts'

/** Which catalog, which torrent of it, and who vouches for its bytes. */
export interface CatalogModelOptions extends CatalogChoice {
  /** Of the catalog: origin and path. A library in this process needs it. */
  readonly endpoint?: string | undefined
  /** Which GGUF of the repository. */
  readonly quant?: string | undefined
  /** The hub whose hashes the bytes are compared with; default: the public one. */
  readonly hub?: { readonly endpoint?: string | undefined; readonly token?: string | undefined }
  /** Accepts the catalog's own list of hashes for a model that is gone from the hub: you trust the catalog instead of the publisher. */
  readonly trustCatalog?: boolean | undefined
  /** `host:port` of peers. */
  readonly peers?: readonly string[] | undefined
  /** Whether peers are looked for in the DHT; default: yes. */
  readonly dht?: boolean | undefined
}

/** Nobody gets anything from a program that imports. */
const KEPT = { seed: false, seedRestricted: false }
const FILL_TIMEOUT_MS = 600_000

/**
 * A model of a catalog of BitTorrent v1 torrents, for `import` of a library: bytes come from its swarm, and from the web where
 * that has none, and become part of the store only if they are those that the hub lists. Nothing is uploaded, and nothing seeded.
 * @param repo `owner/name`, as the catalog lists it
 */
export function catalogModel(repo: string, options: CatalogModelOptions = {}): CatalogModel {
  const { endpoint, hub, dht, quant, trustCatalog, peers, ...choice } = options
  const asked = { repo, quant, trustCatalog, peers }
  const source: CatalogModel & ListableSource = {
    kind: 'catalog',
    ...asked,
    choice: { names: 'normalized', ...choice },
    inProcessOnly: namesOfSet({ endpoint, hub, dht }),
    list: async (library, work, as) => {
      const catalog = new Catalog(library, {
        endpoint,
        hub: hub ?? {},
        sharing: KEPT,
        peerHost: '0.0.0.0',
        dht: dht ?? true,
        uploadLimitBytesPerSecond: 0,
        fillTimeoutMs: FILL_TIMEOUT_MS
      })
      try {
        const chosen = await catalog.choose({ ...source.choice, ...asked })
        const pulled = await catalog.pull(chosen, as, work)
        const close = async (): Promise<void> => {
          await pulled.close()
          await catalog.close()
        }
        return { source: { ...pulled, close }, selection: chosen.selection }
      } catch (error) {
        await catalog.close()
        throw error
      }
    }
  }
  return source
}
