import {
  type ArtifactTorrent,
  COMPANION_BOUNDS,
  type Companions,
  companionsTorrent,
  manifestPath,
  parseSealedManifest,
  pieceLayersOf,
  sealCompanions,
  torrentOf
} from '@svc/manifest'
import {
  blockCount,
  encodeTorrent,
  filesWithLayers,
  formatMagnet,
  HASH_BYTES,
  leafLayer,
  type PieceLayers,
  parsePieceLayers,
  pieceLayer,
  piecesRoot,
  toHex
} from '@svc/metainfo'
import type { Sha256Digest } from '@svc/ref'
import { contentChunks, documentObject, readContentRange } from './content.ts'
import { PublishError } from './errors.ts'
import type { PublishedObject } from './target.ts'

/** A model to publish. */
export interface PublicationInput {
  readonly manifestDigest: Sha256Digest
  readonly manifest: Uint8Array
  /** `ns/name:quant`, for display; absent if the model has no name. */
  readonly ref?: string | undefined
  /** The path of each file of the manifest. */
  readonly pathOf: (digest: Sha256Digest) => string
  /** Its companions, whose files {@link pathOf} knows as well. Only the first of those omitted are listed. */
  readonly companions?: Pick<Companions, 'files' | 'omitted'> | undefined
  /** The bencoded piece layers, if known; otherwise computed from the files. */
  readonly pieceLayers?: Uint8Array | undefined
  /** Base URL for readers, written as a webseed to the `.torrent` and the magnet link. */
  readonly url?: string | undefined
  /** Tracker URLs, also written to both. */
  readonly trackers?: readonly string[] | undefined
  /** Not for others: marks the objects `Cache-Control: private`, and the model in the index. */
  readonly isWithheld?: boolean | undefined
}

/** A torrent as a set of static objects that any web server can serve. */
export interface PublishedTorrent {
  /** `btmh:1220<64 hex>` */
  readonly infohash: string
  /** Torrent name, which is the folder of the files. */
  readonly name: string
  /** Key of the `.torrent`. */
  readonly torrentKey: string
  readonly files: readonly { readonly name: string; readonly sizeBytes: number; readonly digest: Sha256Digest }[]
  /** Files, then the document, the piece layers, and last the `.torrent`: no object refers to one that is not there yet. */
  readonly objects: readonly PublishedObject[]
}

/** A model to publish, with its companions. */
export interface Publication extends PublishedTorrent {
  readonly manifestDigest: Sha256Digest
  readonly ref: string | undefined
  readonly isWithheld: boolean
  /** It has files that are imported as they are. */
  readonly isOpaque: boolean
  readonly magnet: string
  readonly companions?: (PublishedTorrent & { readonly digest: Sha256Digest }) | undefined
}

const FOREVER = 'max-age=31536000, immutable'
/** For the `.torrent`: its webseeds and trackers may change. */
const BRIEFLY = 'max-age=300'

/**
 * Lays out one model: `<torrent name>/<path>` for each file and the manifest (BEP 19), `bt/piece-layers/<infohash>` and
 * `bt/<infohash>.torrent`; and its companions likewise. A pure function of its input; reads companions, and the other
 * files only if piece layers have to be computed.
 * @throws ManifestError, MetainfoError for inconsistent documents; PublishError `E_DIGEST_MISMATCH`; the signal's reason
 */
export async function publicationOf(input: PublicationInput, signal?: AbortSignal): Promise<Publication> {
  const { manifestDigest, manifest, ref, url, trackers = [], isWithheld = false } = input
  const sealed = parseSealedManifest(manifest)
  if (sealed.digest !== manifestDigest)
    throw new PublishError('E_DIGEST_MISMATCH', `the manifest does not match its digest ${manifestDigest}`)
  const torrent = torrentOf(sealed)
  const webseeds = url === undefined ? [] : [url]
  return {
    manifestDigest,
    ref,
    isWithheld,
    isOpaque: sealed.document.files.some(({ kind }) => kind === 'opaque'),
    magnet: formatMagnet({ infohash: torrent.infohash, name: torrent.name, trackers, webseeds, peers: [] }),
    ...(await published(torrent, manifest, input.pieceLayers, input, signal)),
    companions: input.companions && (await publishedCompanions(input.companions, input, signal))
  }
}

type PublishedCompanions = NonNullable<Publication['companions']>

async function publishedCompanions(
  beside: NonNullable<PublicationInput['companions']>,
  input: PublicationInput,
  signal: AbortSignal | undefined
): Promise<PublishedCompanions> {
  const omitted = beside.omitted.slice(0, COMPANION_BOUNDS.omitted)
  const more = beside.omitted.length - omitted.length
  const companions = sealCompanions({ files: beside.files, omitted, ...(more > 0 && { more }) })
  const roots = new Map<Sha256Digest, Uint8Array | undefined>()
  for (const { digest, size: sizeBytes } of companions.document.files) {
    signal?.throwIfAborted()
    const bytes = await readContentRange({ content: { path: input.pathOf(digest) }, sizeBytes, digest }, 0, sizeBytes)
    roots.set(digest, sizeBytes === 0 ? undefined : piecesRoot(leafLayer(bytes), sizeBytes))
  }
  const torrent = companionsTorrent(companions, (digest) => roots.get(digest))
  return { digest: companions.digest, ...(await published(torrent, companions.bytes, undefined, input, signal)) }
}

async function published(
  torrent: ArtifactTorrent,
  document: Uint8Array,
  pieceLayers: Uint8Array | undefined,
  { pathOf, url, trackers = [], isWithheld = false }: PublicationInput,
  signal: AbortSignal | undefined
): Promise<PublishedTorrent> {
  const layersBytes = pieceLayers ?? pieceLayersOf(torrent, await makeLayers(torrent, pathOf, signal))
  const { layers } = parsePieceLayers(layersBytes, torrent)
  const hex = toHex(torrent.infohash)
  const torrentKey = `bt/${hex}.torrent`
  const audience = isWithheld ? 'private' : 'public'
  const known = (key: string, bytes: Uint8Array, contentType: string, caching: string): PublishedObject =>
    documentObject(key, bytes, contentType, `${audience}, ${caching}`)
  const files = torrent.files.filter(({ path }) => path !== manifestPath(torrent.manifestDigest))
  const hints = {
    webseeds: url === undefined ? [] : [url],
    trackers: trackers.map((tracker) => [tracker]),
    createdBy: 'svc'
  }
  return {
    infohash: torrent.infohashText,
    name: torrent.name,
    torrentKey,
    files: files.map(({ path, length, digest }) => ({ name: path, sizeBytes: length, digest })),
    objects: [
      ...files.map(({ path, length, digest }) => ({
        key: `${torrent.name}/${path}`,
        content: { path: pathOf(digest) },
        sizeBytes: length,
        digest,
        contentType: 'application/octet-stream',
        cacheControl: `${audience}, ${FOREVER}`
      })),
      known(`${torrent.name}/${manifestPath(torrent.manifestDigest)}`, document, 'application/json', FOREVER),
      known(`bt/piece-layers/${hex}`, layersBytes, 'application/octet-stream', FOREVER),
      known(torrentKey, encodeTorrent(torrent, layers, hints), 'application/x-bittorrent', BRIEFLY)
    ]
  }
}

/** Computes the piece layers of all files longer than one piece. */
async function makeLayers(
  torrent: ArtifactTorrent,
  pathOf: PublicationInput['pathOf'],
  signal: AbortSignal | undefined
): Promise<PieceLayers> {
  const layers = new Map<string, Uint8Array>()
  const digests = new Map(torrent.files.map(({ path, digest }) => [path, digest]))
  for (const [root, { path, length }] of filesWithLayers(torrent)) {
    const digest = digests.get(path)!
    if (digest === torrent.manifestDigest) continue
    const leaves = new Uint8Array(blockCount(length) * HASH_BYTES)
    let at = 0
    // chunks are 1 MiB, a multiple of the block size
    for await (const chunk of contentChunks({ content: { path: pathOf(digest) }, sizeBytes: length, digest })) {
      signal?.throwIfAborted()
      const own = leafLayer(chunk)
      leaves.set(own, at)
      at += own.length
    }
    layers.set(root, pieceLayer(leaves, length, torrent.pieceLength))
  }
  return layers
}
