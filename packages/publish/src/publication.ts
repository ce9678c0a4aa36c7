import { createHash } from 'node:crypto'
import { type ArtifactTorrent, manifestPath, parseSealedManifest, pieceLayersOf, torrentOf } from '@svc/manifest'
import {
  BLOCK_BYTES,
  encodeTorrent,
  filesWithLayers,
  formatMagnet,
  HASH_BYTES,
  type PieceLayers,
  parsePieceLayers,
  pieceLayer,
  toHex
} from '@svc/metainfo'
import type { Sha256Digest } from '@svc/ref'
import { chunksOf, digestOf } from './content.ts'
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
  /** The bencoded piece layers, if known; otherwise computed from the files. */
  readonly pieceLayers?: Uint8Array | undefined
  /** Base URL for readers, written as a webseed to the `.torrent` and the magnet link. */
  readonly url?: string | undefined
  /** Tracker URLs, also written to both. */
  readonly trackers?: readonly string[] | undefined
  /** Not for others: marks the objects `Cache-Control: private`, and the model in the index. */
  readonly isWithheld?: boolean | undefined
}

/** A model as a set of static objects that any web server can serve. */
export interface Publication {
  readonly manifestDigest: Sha256Digest
  readonly ref: string | undefined
  readonly isWithheld: boolean
  /** `btmh:1220<64 hex>` */
  readonly infohash: string
  /** Torrent name, which is the folder of the files. */
  readonly name: string
  readonly magnet: string
  /** Key of the `.torrent`. */
  readonly torrentKey: string
  readonly files: readonly { readonly name: string; readonly sizeBytes: number; readonly digest: Sha256Digest }[]
  /** Files, then the manifest, the piece layers, and last the `.torrent`: no object refers to one that is not there yet. */
  readonly objects: readonly PublishedObject[]
}

const FOREVER = 'max-age=31536000, immutable'
/** For the `.torrent`: its webseeds and trackers may change. */
const BRIEFLY = 'max-age=300'

/**
 * Lays out one model: `<torrent name>/<path>` for each file and the manifest (BEP 19), `bt/piece-layers/<infohash>` and
 * `bt/<infohash>.torrent`. A pure function of its input; reads the files only if piece layers have to be computed.
 * @throws ManifestError, MetainfoError for inconsistent documents; PublishError `E_DIGEST_MISMATCH`; the signal's reason
 */
export async function publicationOf(input: PublicationInput, signal?: AbortSignal): Promise<Publication> {
  const { manifestDigest, manifest, ref, pathOf, url, trackers = [], isWithheld = false } = input
  const sealed = parseSealedManifest(manifest)
  if (sealed.digest !== manifestDigest) {
    throw new PublishError('E_DIGEST_MISMATCH', `the manifest does not match its digest ${manifestDigest}`)
  }
  const torrent = torrentOf(sealed)
  const layersBytes = input.pieceLayers ?? pieceLayersOf(torrent, await makeLayers(torrent, pathOf, signal))
  const { layers } = parsePieceLayers(layersBytes, torrent)
  const hex = toHex(torrent.infohash)
  const torrentKey = `bt/${hex}.torrent`
  const audience = isWithheld ? 'private' : 'public'
  const document = (key: string, bytes: Uint8Array, contentType: string, caching: string): PublishedObject => ({
    key,
    content: bytes,
    sizeBytes: bytes.length,
    digest: digestOf(bytes),
    contentType,
    cacheControl: `${audience}, ${caching}`
  })
  const files = torrent.files.filter(({ digest }) => digest !== manifestDigest)
  const webseeds = url === undefined ? [] : [url]
  const tiers = trackers.map((tracker) => [tracker])
  return {
    manifestDigest,
    ref,
    isWithheld,
    infohash: torrent.infohashText,
    name: torrent.name,
    magnet: formatMagnet({ infohash: torrent.infohash, name: torrent.name, trackers, webseeds, peers: [] }),
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
      document(`${torrent.name}/${manifestPath(manifestDigest)}`, manifest, 'application/json', FOREVER),
      document(`bt/piece-layers/${hex}`, layersBytes, 'application/octet-stream', FOREVER),
      document(
        torrentKey,
        encodeTorrent(torrent, layers, { webseeds, trackers: tiers, createdBy: 'svc' }),
        'application/x-bittorrent',
        BRIEFLY
      )
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
    const leaves = new Uint8Array(Math.ceil(length / BLOCK_BYTES) * HASH_BYTES)
    let at = 0
    // chunks are 1 MiB, a multiple of the block size
    for await (const chunk of chunksOf({ content: { path: pathOf(digest) }, sizeBytes: length, digest })) {
      signal?.throwIfAborted()
      for (let block = 0; block < chunk.length; block += BLOCK_BYTES) {
        leaves.set(
          createHash('sha256')
            .update(chunk.subarray(block, block + BLOCK_BYTES))
            .digest(),
          at
        )
        at += HASH_BYTES
      }
    }
    layers.set(root, pieceLayer(leaves, length, torrent.pieceLength))
  }
  return layers
}
