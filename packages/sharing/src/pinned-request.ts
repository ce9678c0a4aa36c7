import {
  checkedHints,
  importTarget,
  isHttpUrl,
  isPeerAddress,
  isTrackerUrl,
  LibraryError,
  type MayReplace,
  mayReplaceOf,
  opaqueOf,
  type SwarmHints
} from '@svc/library/parts'
import { type Magnet, MetainfoError, parseMagnet, tryParseInfohash } from '@svc/metainfo'
import { type RepoId, type Sha256Digest, tryParseDigest } from '@svc/ref'
import type { OpaqueFiles } from './opaque-files.ts'

/** The pin of companions, and their torrent. */
export interface CompanionsPin {
  readonly digest: Sha256Digest
  /** `btmh:1220<64 hex>` */
  readonly infohash: string
}

/** What another machine, or this one later, needs to fetch an artifact and its companions. */
export interface PinnedCopy {
  readonly magnet: string
  readonly pin: string
  readonly companions?: { readonly digest: string; readonly infohash: string } | undefined
  /** `ns/name` */
  readonly as?: string | undefined
  readonly recognise?: 'opaque' | undefined
}

/** What to fetch, and how to keep it, as people and programs say it. */
export interface PinnedFields {
  /** The pin: `sha256:<64 hex>` of the manifest. */
  readonly manifestDigest: string
  /** It or an infohash: `btmh:1220<64 hex>`. */
  readonly magnet?: string
  readonly infohash?: string
  readonly trackers?: readonly string[]
  readonly webseeds?: readonly string[]
  /** `host:port` */
  readonly peers?: readonly string[]
  /** Peers may provide the manifest if no webseed does. */
  readonly manifestFromPeers?: boolean
  readonly companions?: { readonly digest: string; readonly infohash: string }
  /** `ns/name`; without it the artifact is known by its digest only. */
  readonly as?: string
  readonly private?: boolean
  readonly recognise?: 'opaque'
  readonly allowPickle?: boolean
  readonly replace?: boolean
  readonly evict?: boolean
}

/** {@link PinnedFields}, checked. */
export interface PinnedRequest {
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
  readonly opaque?: OpaqueFiles | undefined
  /** The artifacts of the name that it may replace. Default: any. */
  readonly mayReplace?: MayReplace
  /** If it does not fit, models that can be fetched again may be evicted. */
  readonly mayEvict?: boolean
  /** A client resumes the owner's import: it replaces nothing, and restores no name given up since. Default false. */
  readonly isResumed?: boolean
}

/**
 * Checks the fields of a pinned import (spec route.18): a magnet or an infohash, a pin, and a webseed unless peers may
 * provide the manifest (spec add.9). @throws LibraryError `E_INVALID`
 */
export function parsePinned(fields: PinnedFields): PinnedRequest {
  const pin = tryParseDigest(fields.manifestDigest)
  if (pin === undefined) {
    throw bad(
      'the field "manifestDigest" must be the pin: "sha256:" and 64 lower-case hex characters; a magnet or infohash alone is not enough'
    )
  }
  const magnet = parsedMagnet(fields)
  const infohashText =
    magnet === undefined ? infohashOf(fields) : `btmh:1220${Buffer.from(magnet.infohash).toString('hex')}`
  const hints = hintsOf(fields, magnet)
  const { manifestFromPeers = false } = fields
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
    companions: companionsOf(fields),
    repo: fields.as === undefined ? undefined : importTarget(fields.as, 'as'),
    private: fields.private ?? false,
    opaque: opaqueOf(fields),
    mayReplace: mayReplaceOf(fields),
    mayEvict: fields.evict ?? false
  }
}

const bad = (message: string, cause?: unknown): LibraryError => new LibraryError('E_INVALID', message, { cause })

function parsedMagnet({ magnet, infohash }: PinnedFields): Magnet | undefined {
  if (magnet === undefined) return undefined
  if (infohash !== undefined) throw bad('"magnet" and "infohash" exclude each other: send only one of them')
  try {
    return parseMagnet(magnet)
  } catch (cause) {
    if (!(cause instanceof MetainfoError)) throw cause
    throw bad(`the field "magnet": ${cause.message}`, cause)
  }
}

function infohashOf({ infohash }: PinnedFields): string {
  if (infohash === undefined) throw bad('the field "magnet" or "infohash" is missing: send one of them')
  if (tryParseInfohash(infohash) !== undefined) return infohash
  throw bad('the field "infohash" must be "btmh:1220" and 64 lower-case hex characters')
}

/** Other kinds of hints in a magnet are ignored: other programs wrote it. */
function hintsOf(fields: PinnedFields, magnet: Magnet | undefined): SwarmHints {
  const of = (field: 'trackers' | 'webseeds' | 'peers', what: string, isOne: (text: string) => boolean) =>
    checkedHints([...(fields[field] ?? []), ...(magnet?.[field] ?? []).filter(isOne)], field, what, isOne)
  return {
    trackers: of('trackers', 'http, https or udp URLs', isTrackerUrl),
    webseeds: of('webseeds', 'http URLs', isHttpUrl),
    peers: of('peers', '"host:port"', isPeerAddress)
  }
}

function companionsOf({ companions }: PinnedFields): CompanionsPin | undefined {
  if (companions === undefined) return undefined
  const digest = tryParseDigest(companions.digest)
  if (digest !== undefined && tryParseInfohash(companions.infohash) !== undefined)
    return { digest, infohash: companions.infohash }
  throw bad(
    'the field "companions" has a "digest", "sha256:" and 64 hex characters, and an "infohash", "btmh:1220" and 64'
  )
}
