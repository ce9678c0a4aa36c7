import { type Hub, HubError, type HubFile, type HubListing } from '@svc/hub'
import type { Clock } from '@svc/internal-clock'
import { LibraryError, type Provenance } from '@svc/library/parts'
import { digestFromHex, type Sha256Digest } from '@svc/ref'
import { hubFailure, hubProvenance } from '@svc/sources/hub/parts'
import type { ListedTorrent } from './listing.ts'
import type { CatalogProvider } from './provider.ts'

/** All that the catalog's record says of a file. */
interface RecordedFile {
  readonly sha256: Sha256Digest
  readonly sizeBytes?: undefined
  readonly gitBlobSha1?: undefined
  readonly repoId?: undefined
}

/** The expected content of a file, whatever source its bytes come from. A file of the hub has the hub as one more. */
export type AnchorFile = HubFile | RecordedFile

/**
 * The list that determines which bytes are right (spec cat.6): the hub's tree at the revision that the webseed is
 * pinned to, or, with consent, for a model that is gone from there, the catalog's own record.
 */
export interface Anchor {
  readonly kind: 'hub' | 'catalog'
  /** In the hub's spelling, if the hub still has it. */
  readonly repo: string
  readonly revision: string | undefined
  /** Who may have the bytes, as far as the list tells. */
  readonly provenance: Provenance
  readonly files: ReadonlyMap<string, AnchorFile>
}

const GONE = new Set(['no-such-repo', 'no-such-revision', 'hidden-or-absent'])

export const TRUST_SHIFT =
  "the model is gone from the hub: its bytes were checked against the catalog's own SHA-256 list, so you trust the catalog instead of the publisher"

/**
 * @throws LibraryError `E_NOT_ANCHORED` without consent for a rescued model, or if the catalog has no record either;
 *   `E_SOURCE_UNAVAILABLE`, `E_SOURCE_FORBIDDEN`, `E_RATE_LIMITED` from the hub; `E_BAD_LISTING` for a hostile listing.
 */
export async function findAnchor(
  entry: ListedTorrent,
  from: {
    readonly hub: Hub
    /** Whether that hub object sends a token. */
    readonly hasToken: boolean
    readonly provider: CatalogProvider
    readonly trustCatalog: boolean
    readonly signal: AbortSignal
    readonly clock: Clock
  }
): Promise<Anchor> {
  const listing = entry.webseed && (await hubListing(from.hub, entry.repo, entry.webseed.revision, from.signal))
  if (listing) return hubAnchor(listing, from)

  const why = entry.webseed
    ? `the hub no longer has ${entry.repo} at the listed revision`
    : `the catalog names no revision of ${entry.repo}`
  if (!from.trustCatalog) {
    throw new LibraryError('E_NOT_ANCHORED', `${why}: only the catalog itself vouches for these bytes`, {
      advice: { to: 'trust-catalog' }
    })
  }
  const record = await from.provider.record(entry.repo, from.signal)
  if (record === undefined) {
    throw new LibraryError(
      'E_NOT_ANCHORED',
      `${why}, and the catalog has no SHA-256 list of it: the bytes could not be checked`
    )
  }
  return {
    kind: 'catalog',
    repo: entry.repo,
    revision: entry.webseed?.revision,
    // a public catalog lists it
    provenance: { access: 'public' },
    files: new Map([...record].map(([path, sha256]) => [path, { sha256: digestFromHex(sha256) }]))
  }
}

async function hubListing(
  hub: Hub,
  repo: string,
  revision: string,
  signal: AbortSignal
): Promise<HubListing | undefined> {
  try {
    return await hub.listing(repo, revision, { signal })
  } catch (error) {
    if (error instanceof HubError && GONE.has(error.reason)) return undefined
    throw hubFailure(error)
  }
}

function hubAnchor(listing: HubListing, from: { readonly hasToken: boolean; readonly clock: Clock }): Anchor {
  return {
    kind: 'hub',
    repo: listing.repoId,
    revision: listing.commit,
    provenance: hubProvenance(listing, from),
    files: new Map(listing.files.map((file) => [file.path, file]))
  }
}
