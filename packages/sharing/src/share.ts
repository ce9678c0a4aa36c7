import { companionsUnder, heldBackReason, type Library, LibraryError, NO_HINTS, ownHints } from '@svc/library/parts'
import { formatMagnet } from '@svc/metainfo'
import type { Sha256Digest } from '@svc/ref'
import type { WaysIn } from './addresses.ts'
import type { ArtifactSwarm } from './artifact-swarm.ts'
import type { ArtifactTorrents } from './artifact-torrents.ts'
import type { CompanionsSwarm } from './companions-swarm.ts'
import type { ArtifactSeeding } from './seeding.ts'
import type { SwarmSettings } from './settings.ts'
import { isWhole } from './space.ts'

export interface ShareRequest {
  readonly ref: string
  readonly manifestDigest: Sha256Digest
  /** `ns/name`, whose companions are shared. */
  readonly name: string
  /** Announce it first, if nothing prevents that. */
  readonly join: boolean
}

/** What somebody else needs to fetch a model: a magnet and a pin suffice. */
export interface Shared {
  readonly ref: string
  /** The pin: `sha256:<hex>` of the model's manifest, which names each file by its own SHA-256. */
  readonly manifestDigest: string
  /** `btmh:1220<64 hex>` */
  readonly infohash: string
  /** Of the torrent. */
  readonly name: string
  /** With all of the addresses below. */
  readonly magnet: string
  readonly trackers: string[]
  readonly webseeds: string[]
  /** `host:port` */
  readonly peers: string[]
  /** Whether peers get it now. */
  readonly announced: boolean
  /** Why it may not be announced. */
  readonly heldBack?: string
  /** Why else it is not, or what limits who can reach it. */
  readonly note?: SharedNote
  /** It has files that are imported as they are: whoever fetches it has to agree to that. */
  readonly recognise?: 'opaque'
  /** What lies beside the model, such as a chat template, with a torrent of its own. */
  readonly companions?: { readonly digest: string; readonly infohash: string }
}

/**
 * Why a model is not announced, though it may be: it is being verified after the start, waits to be shared, or lacks files;
 * or who can reach it: nobody, as the machine is in no network, or programs of this machine.
 */
export type SharedNote = 'being-verified' | 'not-announced-yet' | 'incomplete' | 'no-network' | 'loopback-only'

interface ShareParts extends Pick<Library, 'store' | 'artifacts' | 'documents' | 'advise'> {
  readonly settings: SwarmSettings
  readonly torrents: Pick<ArtifactTorrents, 'of'>
  readonly swarm: Pick<ArtifactSwarm, 'joined'>
  readonly seeding: Pick<ArtifactSeeding, 'join' | 'awaitsVerification'>
  readonly companions: Pick<CompanionsSwarm, 'torrentOf'>
}

/** What another node needs to fetch an artifact. @throws LibraryError `E_NOT_FOUND` */
export async function share(
  { ref, manifestDigest, name, join }: ShareRequest,
  ways: WaysIn,
  { store, artifacts, documents, advise, settings, torrents, swarm, seeding, companions: beside }: ShareParts
): Promise<Shared> {
  const torrent = await torrents.of(manifestDigest)
  if (torrent === undefined) throw new LibraryError('E_NOT_FOUND', `the manifest ${manifestDigest} is not in the store`)
  const manifest = await documents.manifest(manifestDigest)
  const isOpaque = manifest?.files.some(({ kind }) => kind === 'opaque') === true
  const standing = await artifacts.standing(manifestDigest)
  const state = standing === 'damaged' ? undefined : standing
  const heldBack = heldBackReason(standing, settings, advise)
  const isAnnounced = (): boolean => swarm.joined.get(manifestDigest)?.seeding === true
  if (join && heldBack === undefined && !isAnnounced()) await seeding.join(manifestDigest)
  const announced = isAnnounced()
  const notAnnounced = async (): Promise<SharedNote> => {
    if (seeding.awaitsVerification(manifestDigest)) return 'being-verified'
    return (await isWhole(store, torrent)) ? 'not-announced-yet' : 'incomplete'
  }
  const note = announced ? ways.note : heldBack === undefined ? await notAnnounced() : undefined
  const hints = {
    trackers: [...new Set([...ownHints(state?.hints ?? NO_HINTS).trackers, ...settings.trackers])],
    webseeds: [...ways.webseeds],
    peers: [...ways.peers]
  }
  const given = companionsUnder(state, name)
  const companions = given && (await beside.torrentOf(given, state!))
  return {
    ref,
    manifestDigest,
    infohash: torrent.infohashText,
    name: torrent.name,
    magnet: formatMagnet({ infohash: torrent.infohash, name: torrent.name, ...hints }),
    ...hints,
    announced,
    ...(!announced && heldBack !== undefined && { heldBack }),
    ...(note !== undefined && { note }),
    ...(isOpaque && { recognise: 'opaque' as const }),
    ...(companions && { companions: { digest: companions.manifestDigest, infohash: companions.infohashText } })
  }
}
