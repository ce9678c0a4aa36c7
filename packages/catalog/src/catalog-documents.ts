import { type DocumentKind, type DocumentParsers, DocumentThread, workerUrl } from '@svc/internal-workers'
import { LibraryError } from '@svc/library/parts'
import { MetainfoError } from '@svc/metainfo'
import { parseV1Torrent, SwarmV1Error, type V1Layout } from '@svc/swarm-v1'
import { parseDigestList } from './digest-list.ts'
import { type ListedTorrent, parseCatalogListing } from './listing.ts'

/** What is read of the documents of a catalog and its swarms, by their kind. */
interface CatalogKinds {
  readonly listing: DocumentKind<readonly ListedTorrent[]>
  readonly v1Torrent: DocumentKind<V1Layout, [infohash: string]>
  /** The SHA-256 of each path, on a page of a catalog. Undefined where it has none, or contradicts itself. */
  readonly digestList: DocumentKind<readonly (readonly [path: string, sha256: string])[] | undefined>
}

export const DOCUMENTS: DocumentParsers<CatalogKinds> = {
  parsers: {
    listing: (bytes) => parseCatalogListing(new TextDecoder().decode(bytes)),
    v1Torrent: parseV1Torrent,
    digestList: (bytes) => {
      const digests = parseDigestList(new TextDecoder().decode(bytes))
      return digests && [...digests]
    }
  },
  json: ['listing', 'digestList'],
  errors: () => ({ MetainfoError, SwarmV1Error }),
  closed: () => new LibraryError('E_CLOSED', 'the catalog is closed')
}

/** Reads the documents of a catalog, and of its swarms. */
export class CatalogDocumentReader extends DocumentThread<CatalogKinds> {
  constructor() {
    super(DOCUMENTS, { url: workerUrl('./catalog-document-worker', import.meta.url), name: 'svc-catalog-documents' })
  }
}

export type ParseCatalogDocument = CatalogDocumentReader['parse']
