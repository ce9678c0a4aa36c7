import type { Work } from '@svc/library/parts'
import { type ArtifactState, type Library, LibraryError, readSmallBlob, type SwarmHints } from '@svc/library/parts'
import { type ArtifactTorrent, type Manifest, type Sealed, torrentOf } from '@svc/manifest'
import type { PeerDocumentContext, PeerDocumentRequest } from './peer-documents.ts'
import type { PinnedRequest } from './pinned-request.ts'
import type { WebseedDocuments } from './webseed-documents.ts'

export interface PinnedTorrentDeps extends Pick<Library, 'store' | 'documents' | 'artifacts'> {
  readonly manifestFromPeers: (request: PeerDocumentRequest, context: PeerDocumentContext) => Promise<Uint8Array>
  /** True if only the sources in the request may learn of it. */
  readonly isWithheld: (artifact: Pick<ArtifactState, 'provenance'> | 'damaged') => boolean
}

export type PinnedTorrent = ArtifactTorrent & { readonly manifest: Sealed<Manifest> }

/** What else is known while the manifest is looked for. */
interface Search {
  /** That of the artifact, as far as it is known. */
  readonly provenance: () => ArtifactState['provenance']
  /** Why sources are unusable, for people. */
  readonly warnings: string[]
}

/**
 * The torrent that follows from the pinned manifest, which must be the requested one: nothing else is requested before
 * that is certain. The manifest comes from the store, else from a webseed, else from peers.
 * @returns also the hints, without webseeds if none gave the manifest: they cannot give the rest either
 * @throws LibraryError `E_SOURCE_UNAVAILABLE`, `E_NOT_IMPORTABLE`
 */
export async function pinnedTorrent(
  request: PinnedRequest,
  webseeds: WebseedDocuments,
  deps: PinnedTorrentDeps,
  work: Work,
  search: Search
): Promise<{ readonly torrent: PinnedTorrent; readonly hints: SwarmHints }> {
  const { pin, infohashText } = request
  let { hints } = request
  let bytes = await readSmallBlob(deps.store, pin)
  if (bytes === undefined && hints.webseeds.length > 0) {
    work.report({ message: 'asking the webseeds for the manifest' })
    bytes = await webseeds.manifest(pin, work.signal)
  }
  if (bytes === undefined && request.manifestFromPeers) {
    bytes = await fromPeers(request, deps, work, search)
    hints = { ...hints, webseeds: [] }
  }
  work.report({ message: undefined })
  if (bytes === undefined) {
    const why = search.warnings.join('; ')
    throw new LibraryError('E_SOURCE_UNAVAILABLE', `no webseed sent the pinned manifest ${pin}: ${why}`)
  }
  const torrent = await torrentIn(bytes, pin, deps)
  if (torrent.infohashText === infohashText) return { torrent, hints }
  throw new LibraryError(
    'E_NOT_IMPORTABLE',
    `the torrent ${infohashText} does not belong to the pin: the pinned manifest implies ${torrent.infohashText}`
  )
}

async function fromPeers(
  { pin, infohashText, hints }: PinnedRequest,
  { artifacts, manifestFromPeers, isWithheld }: PinnedTorrentDeps,
  { signal, report }: Work,
  { provenance, warnings }: Search
): Promise<Uint8Array> {
  const before = await artifacts.standing(pin)
  const quiet = isWithheld({ provenance: provenance() }) || (before !== undefined && isWithheld(before))
  const lies: string[] = []
  try {
    const context = { signal, onProgress: report, onLie: (lie: string) => lies.push(lie) }
    const bytes = await manifestFromPeers({ pin, infohashText, hints, quiet }, context)
    // unusable webseeds no longer matter, but proven bad data does
    warnings.splice(0, warnings.length, ...lies)
    return bytes
  } catch (cause) {
    if (!(cause instanceof LibraryError) || cause.code !== 'E_SOURCE_UNAVAILABLE' || warnings.length === 0) throw cause
    throw new LibraryError(cause.code, `${cause.message}; ${warnings.join('; ')}`, { cause })
  }
}

async function torrentIn(
  bytes: Uint8Array,
  digest: PinnedRequest['pin'],
  { documents }: Pick<PinnedTorrentDeps, 'documents'>
): Promise<PinnedTorrent> {
  try {
    const manifest = { digest, bytes, document: await documents.parse('manifest', bytes) }
    return { ...torrentOf(manifest), manifest }
  } catch (cause) {
    if (cause instanceof LibraryError) throw cause
    const why = (cause as Error).message
    throw new LibraryError('E_NOT_IMPORTABLE', `the pinned bytes are not a manifest: ${why}`, { cause })
  }
}
