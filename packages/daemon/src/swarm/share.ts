import type { ShareResult } from '@svc/client/protocol'
import { companionsUnder, heldBackReason, type Library, NO_HINTS, ownHints } from '@svc/library/parts'
import { formatMagnet } from '@svc/metainfo'
import type { Sha256Digest } from '@svc/ref'
import type { SwarmConfig } from '../config/config.ts'
import { DaemonError } from '../errors.ts'
import type { WaysIn } from './addresses.ts'
import type { ArtifactSwarm } from './artifact-swarm.ts'
import type { ArtifactTorrents } from './artifact-torrents.ts'
import type { CompanionsSwarm } from './companions-swarm.ts'
import { importBtCommand } from './pinned-companions.ts'
import type { ArtifactSeeding } from './seeding.ts'
import { isWhole } from './space.ts'

export interface ShareRequest {
  readonly ref: string
  readonly manifestDigest: Sha256Digest
  /** `ns/name`, whose companions are shared. */
  readonly name: string
  /** Announce it first, if nothing prevents that. */
  readonly join: boolean
}

interface ShareParts extends Pick<Library, 'store' | 'artifacts'> {
  readonly config: SwarmConfig
  readonly torrents: Pick<ArtifactTorrents, 'of'>
  readonly swarm: Pick<ArtifactSwarm, 'joined'>
  readonly seeding: Pick<ArtifactSeeding, 'join' | 'awaitsVerification'>
  readonly companions: Pick<CompanionsSwarm, 'torrentOf'>
}

/** The details that another node needs to fetch an artifact. @throws DaemonError `E_NOT_FOUND` */
export async function share(
  { ref, manifestDigest, name, join }: ShareRequest,
  ways: WaysIn,
  { store, artifacts, config, torrents, swarm, seeding, companions: beside }: ShareParts
): Promise<ShareResult> {
  const torrent = await torrents.of(manifestDigest)
  if (torrent === undefined) throw new DaemonError('E_NOT_FOUND', `the manifest ${manifestDigest} is not in the store`)
  const standing = await artifacts.standing(manifestDigest)
  const state = standing === 'damaged' ? undefined : standing
  const heldBack = heldBackReason(standing, config)
  const isAnnounced = (): boolean => swarm.joined.get(manifestDigest)?.seeding === true
  if (join && heldBack === undefined && !isAnnounced()) await seeding.join(manifestDigest)
  const announced = isAnnounced()
  const notAnnounced = async (): Promise<string> => {
    if (heldBack !== undefined) return heldBack
    if (seeding.awaitsVerification(manifestDigest))
      return 'it is being verified after the start, and is announced when that is done'
    return (await isWhole(store, torrent))
      ? 'it is not announced yet: svc share announces it now, the next start of the daemon does too, and [swarm] seed_on_import = true announces every import'
      : 'it is not complete here; svc pull fetches the rest'
  }
  const note = announced ? ways.note : await notAnnounced()
  const hints = {
    trackers: [...new Set([...ownHints(state?.hints ?? NO_HINTS).trackers, ...config.trackers])],
    webseeds: [...ways.webseeds],
    peers: [...ways.peers]
  }
  const given = companionsUnder(state, name)
  const companionsTorrent = given && (await beside.torrentOf(given, state!))
  const companions = companionsTorrent && {
    digest: companionsTorrent.manifestDigest,
    infohash: companionsTorrent.infohashText
  }
  return {
    ref,
    manifestDigest,
    infohash: torrent.infohashText,
    name: torrent.name,
    magnet: formatMagnet({ infohash: torrent.infohash, name: torrent.name, ...hints }),
    ...hints,
    announced,
    ...(note !== undefined && { note }),
    ...(companions && { companions }),
    command: importBtCommand({ torrent, pin: manifestDigest, companions, hints })
  }
}
