import {
  buildInfo,
  encodePieceLayers,
  formatInfohash,
  leafLayer,
  type PieceLayers,
  pieceLayer,
  piecesRoot,
  type TorrentFile,
  type TorrentInfo,
  toHex
} from '@svc/metainfo'
import { digestBytes, digestHex, type Sha256Digest } from '@svc/ref'
import type { Companions } from './companions.ts'
import { ManifestError } from './errors.ts'
import type { Manifest, Sealed } from './types.ts'

const MIB = 1024 * 1024
const MAX_PIECES = 8_192
const HASHES_PER_REQUEST = 512

/** A file of an artifact's torrent: an entry of the manifest, or the manifest itself. */
export interface ArtifactFile extends TorrentFile {
  /** SHA-256 of the whole file, the blob's address. */
  readonly digest: Sha256Digest
}

/** The torrent that follows from a manifest (spec doc.17), or of companions (spec doc.22). */
export interface ArtifactTorrent extends Omit<TorrentInfo, 'files'> {
  /** For a torrent of companions: that of their document. */
  readonly manifestDigest: Sha256Digest
  /** `btmh:1220<64 hex>` */
  readonly infohashText: string
  /** In file-tree order, the manifest at `manifest/sha256-<hex>` among them. */
  readonly files: readonly ArtifactFile[]
  /** Leaf layer of the manifest's own bytes: 32 bytes per 16 KiB. */
  readonly manifestLeaves: Uint8Array
}

/** `svc-sha256-<first 12 hex of the manifest digest>` */
export const torrentName = (manifestDigest: Sha256Digest): string =>
  `svc-sha256-${digestHex(manifestDigest).slice(0, 12)}`

/** `manifest/sha256-<hex>`: the manifest's path within the artifact's torrent. */
export const manifestPath = (manifestDigest: Sha256Digest): string => `manifest/sha256-${digestHex(manifestDigest)}`

function hasLonelyPiece(sizeBytes: number, pieceLengthBytes: number): boolean {
  const pieces = Math.ceil(sizeBytes / pieceLengthBytes)
  return pieces > HASHES_PER_REQUEST && pieces % HASHES_PER_REQUEST === 1
}

/**
 * The piece length for files of these sizes, including the manifest's (spec doc.18): the smallest power of two of at
 * least 1 MiB that gives at most 8,192 pieces in total, at most 16 MiB; then doubled while some file has 512n+1 pieces
 * (n ≥ 1), since some clients cannot request the hashes of such a file.
 */
export function pieceLengthFor(sizes: readonly number[]): number {
  const totalBytes = sizes.reduce((sum, size) => sum + size, 0)
  let pieceLengthBytes = MIB
  while (pieceLengthBytes < 16 * MIB && Math.ceil(totalBytes / pieceLengthBytes) > MAX_PIECES) pieceLengthBytes *= 2
  while (sizes.some((size) => hasLonelyPiece(size, pieceLengthBytes))) pieceLengthBytes *= 2
  return pieceLengthBytes
}

/** Of the latest call: sealing a manifest and its record needs it twice, and a thousand files take tens of milliseconds each time. */
let latest: { readonly manifest: Sealed<Manifest>; readonly torrent: ArtifactTorrent } | undefined

/**
 * The torrent of a sealed manifest, a pure function of its bytes. Hashes the manifest (at most 4 MiB) to compute its
 * pieces root.
 * @throws ManifestError `E_INVALID` `torrent` when no torrent can hold the files.
 */
export function torrentOf(manifest: Sealed<Manifest>): ArtifactTorrent {
  if (latest?.manifest !== manifest) latest = { manifest, torrent: makeTorrent(manifest) }
  return latest.torrent
}

const makeTorrent = (manifest: Sealed<Manifest>): ArtifactTorrent =>
  torrentOfDocument(
    manifest,
    manifest.document.files.map(({ name, size, digest, bt }) => ({
      path: name,
      length: size,
      digest,
      piecesRoot: bt === undefined ? undefined : digestBytes(bt.merkleRoot)
    }))
  )

/**
 * The torrent of an artifact's companions (spec doc.22): like that of a manifest, with their document in its place. A pure
 * function of all their bytes, since the document does not have the roots.
 * @param rootOf undefined for an empty file
 * @throws ManifestError `E_INVALID` `torrent` when no torrent can hold the files.
 */
export const companionsTorrent = (
  companions: Sealed<Companions>,
  rootOf: (digest: Sha256Digest) => Uint8Array | undefined
): ArtifactTorrent =>
  torrentOfDocument(
    companions,
    companions.document.files.map(({ path, size, digest }) => ({
      path,
      length: size,
      digest,
      piecesRoot: rootOf(digest)
    }))
  )

function torrentOfDocument(
  { bytes, digest }: Omit<Sealed<unknown>, 'document'>,
  listed: readonly (Pick<ArtifactFile, 'path' | 'length' | 'digest'> & {
    readonly piecesRoot: Uint8Array | undefined
  })[]
): ArtifactTorrent {
  const own = manifestPath(digest)
  const manifestLeaves = leafLayer(bytes)
  const digests = new Map([[own, digest], ...listed.map((file) => [file.path, file.digest] as const)])
  try {
    const { files, ...info } = buildInfo({
      name: torrentName(digest),
      pieceLength: pieceLengthFor([...listed.map(({ length }) => length), bytes.length]),
      files: [...listed, { path: own, length: bytes.length, piecesRoot: piecesRoot(manifestLeaves, bytes.length) }]
    })
    return {
      ...info,
      manifestDigest: digest,
      infohashText: formatInfohash(info.infohash),
      files: files.map((file) => ({ ...file, digest: digests.get(file.path)! })),
      manifestLeaves
    }
  } catch (cause) {
    throw new ManifestError('E_INVALID', 'torrent', 'these files cannot form a torrent', { cause })
  }
}

/**
 * The piece layers blob of a torrent: the bencoded dictionary root → layer, including the manifest's own layer if it
 * needs one. `layers` holds those of the other files larger than a piece, by root in hex; further entries are ignored.
 * @throws ManifestError `E_INVALID` `torrent` for an absent layer or one that does not fold to its root.
 */
export function pieceLayersOf(torrent: ArtifactTorrent, layers: PieceLayers): Uint8Array {
  const all = new Map(layers)
  const own = torrent.files.find((file) => file.digest === torrent.manifestDigest)!
  if (own.length > torrent.pieceLength) {
    all.set(toHex(own.piecesRoot!), pieceLayer(torrent.manifestLeaves, own.length, torrent.pieceLength))
  }
  try {
    return encodePieceLayers(all, torrent)
  } catch (cause) {
    throw new ManifestError('E_INVALID', 'torrent', 'the piece layers do not belong to this torrent', { cause })
  }
}
