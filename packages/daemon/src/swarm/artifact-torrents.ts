import type { DiskBlobStore } from '@svc/cas'
import { type ArtifactTorrent, type Manifest, parseManifest, parseRecord, type Sealed, torrentOf } from '@svc/manifest'
import { type PieceLayers, parsePieceLayers } from '@svc/metainfo'
import type { Sha256Digest } from '@svc/ref'
import type { ArtifactState } from '../library/artifacts.ts'
import type { Documents } from '../library/documents.ts'
import type { LeafLayers } from '../library/leaf-layers.ts'
import { readSmallBlob } from '../library/small-blob.ts'

/** Piece layers: 32 bytes per piece, and at most 2 million pieces. */
const MAX_LAYERS_BYTES = 80 << 20

/** The store's manifests as the torrents that follow from them (spec doc.17). */
export class ArtifactTorrents {
  readonly #store: DiskBlobStore
  readonly #documents: Documents
  readonly #leafLayers: LeafLayers

  constructor(store: DiskBlobStore, documents: Documents, leafLayers: LeafLayers) {
    this.#store = store
    this.#documents = documents
    this.#leafLayers = leafLayers
  }

  /** Undefined when the manifest is not in the store. @throws DaemonError `E_CORRUPTION` */
  async of(manifestDigest: Sha256Digest): Promise<ArtifactTorrent | undefined> {
    // through the documents, which verify what they read
    const manifest = await this.#documents.sealedManifest(manifestDigest)
    return manifest && torrentOf(manifest)
  }

  /**
   * The piece layers of a complete artifact, verified against their roots: from its record, else from the blobs' leaf
   * layers.
   * @throws DaemonError `E_CORRUPTION` when the blobs do not have the manifest's roots
   */
  async layersOf(
    torrent: ArtifactTorrent,
    artifact: ArtifactState | undefined,
    signal: AbortSignal
  ): Promise<PieceLayers> {
    return (await this.recordedLayersOf(torrent, artifact)) ?? this.#leafLayers.pieceLayers(torrent, { signal })
  }

  /** The layers named by the distribution record, if they are present, complete and verified. */
  async recordedLayersOf(
    torrent: ArtifactTorrent,
    artifact: ArtifactState | undefined
  ): Promise<PieceLayers | undefined> {
    if (artifact?.record === undefined) return undefined
    try {
      const bytes = await readSmallBlob(this.#store, artifact.record)
      if (bytes === undefined) return undefined
      const record = parseRecord(bytes)
      if (record.torrent.infohash !== torrent.infohashText) return undefined
      const encoded = await readSmallBlob(this.#store, record.torrent.pieceLayersDigest, MAX_LAYERS_BYTES)
      if (encoded === undefined) return undefined
      const { layers, missing } = parsePieceLayers(encoded, torrent)
      return missing.length === 0 ? layers : undefined
    } catch {
      // a damaged record or layers blob is created again from the leaf layers, which are verified
      return undefined
    }
  }
}

/** A manifest's bytes with their parsed content. @throws ManifestError */
export const sealedManifest = (digest: Sha256Digest, bytes: Uint8Array): Sealed<Manifest> => ({
  digest,
  bytes,
  document: parseManifest(bytes)
})
