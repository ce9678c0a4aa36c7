import type { ImportBtBody } from '@svc/client/protocol'
import {
  checkedHints,
  isHttpUrl,
  isPeerAddress,
  isTrackerUrl,
  type MayReplace,
  type SwarmHints
} from '@svc/library/parts'
import { type Magnet, MetainfoError, parseMagnet, tryParseInfohash } from '@svc/metainfo'
import { type RepoId, type Sha256Digest, tryParseDigest } from '@svc/ref'
import { DaemonError } from '../errors.ts'
import { importTarget, mayReplaceOf, opaqueOf } from '../import-fields.ts'

/** The pin of companions, and their torrent. */
export interface CompanionsPin {
  readonly digest: Sha256Digest
  /** `btmh:1220<64 hex>` */
  readonly infohash: string
}

export interface PinnedImport {
  readonly pin: Sha256Digest
  /** `btmh:1220<64 hex>` */
  readonly infohashText: string
  readonly hints: SwarmHints
  /** Peers may provide the manifest if no webseed does. */
  readonly manifestFromPeers: boolean
  /** The artifact's companions, with their own pin. */
  readonly companions?: CompanionsPin | undefined
  /** The repository to add it to; without one the artifact is known by its digest only. */
  readonly repo: RepoId | undefined
  readonly private: boolean
  /** Files may be such as no row recognizes, pickles only if the owner says so (spec rec.32). */
  readonly opaque?: { readonly allowsPickles: boolean } | undefined
  /** The artifacts of the name that it may replace. Default: any. */
  readonly mayReplace?: MayReplace
  /** If it does not fit, models that can be fetched again may be evicted. */
  readonly mayEvict?: boolean
  /** A client resumes the owner's import: it replaces nothing, and restores no name given up since. Default false. */
  readonly isResumed?: boolean
}

/**
 * Parses a body of POST /v1/import/bt (spec route.18): a magnet or an infohash, a pin, and a webseed unless peers may
 * provide the manifest (spec add.9). @throws DaemonError `E_BAD_REQUEST`
 */
export function parseImportBt(body: ImportBtBody): PinnedImport {
  const pin = tryParseDigest(body.manifestDigest)
  if (pin === undefined) {
    throw bad(
      'the field "manifestDigest" must be the pin: "sha256:" and 64 lower-case hex characters; a magnet or infohash alone is not enough'
    )
  }
  const magnet = parsedMagnet(body)
  const infohashText =
    magnet === undefined ? infohashOf(body) : `btmh:1220${Buffer.from(magnet.infohash).toString('hex')}`
  const hints = hintsOf(body, magnet)
  const { manifestFromPeers = false } = body
  if (hints.webseeds.length === 0 && !manifestFromPeers) {
    throw bad(
      'the field "webseeds" needs at least one http URL, here or as ws= of the magnet: the pinned manifest comes from there, or from peers with "manifestFromPeers": true'
    )
  }
  return {
    pin,
    infohashText,
    hints,
    manifestFromPeers,
    companions: companionsOf(body),
    repo: body.as === undefined ? undefined : importTarget(body.as, 'as'),
    private: body.private ?? false,
    opaque: opaqueOf(body),
    mayReplace: mayReplaceOf(body),
    mayEvict: body.evict ?? false
  }
}

const bad = (message: string, cause?: unknown): DaemonError => new DaemonError('E_BAD_REQUEST', message, { cause })

function parsedMagnet({ magnet, infohash }: ImportBtBody): Magnet | undefined {
  if (magnet === undefined) return undefined
  if (infohash !== undefined) throw bad('"magnet" and "infohash" exclude each other: send only one of them')
  try {
    return parseMagnet(magnet)
  } catch (cause) {
    if (!(cause instanceof MetainfoError)) throw cause
    throw bad(`the field "magnet": ${cause.message}`, cause)
  }
}

function infohashOf({ infohash }: ImportBtBody): string {
  if (infohash === undefined) throw bad('the field "magnet" or "infohash" is missing: send one of them')
  if (tryParseInfohash(infohash) !== undefined) return infohash
  throw bad('the field "infohash" must be "btmh:1220" and 64 lower-case hex characters')
}

/** Other kinds of hints in a magnet are ignored: other programs wrote it. */
function hintsOf(body: ImportBtBody, magnet: Magnet | undefined): SwarmHints {
  const of = (field: 'trackers' | 'webseeds' | 'peers', what: string, isOne: (text: string) => boolean) =>
    checkedHints([...(body[field] ?? []), ...(magnet?.[field] ?? []).filter(isOne)], field, what, isOne)
  return {
    trackers: of('trackers', 'http, https or udp URLs', isTrackerUrl),
    webseeds: of('webseeds', 'http URLs', isHttpUrl),
    peers: of('peers', '"host:port"', isPeerAddress)
  }
}

function companionsOf({ companions }: ImportBtBody): CompanionsPin | undefined {
  if (companions === undefined) return undefined
  const digest = tryParseDigest(companions.digest)
  if (digest !== undefined && tryParseInfohash(companions.infohash) !== undefined)
    return { digest, infohash: companions.infohash }
  throw bad(
    'the field "companions" has a "digest", "sha256:" and 64 hex characters, and an "infohash", "btmh:1220" and 64'
  )
}
