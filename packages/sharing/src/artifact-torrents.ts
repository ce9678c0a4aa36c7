import { type ArtifactState, givenCompanions, type Library, readSmallBlob, writeDocument } from '@svc/library/parts'
import {
  type ArtifactTorrent,
  type Companions,
  companionsTorrent,
  parseRecord,
  type Sealed,
  torrentOf
} from '@svc/manifest'
import type { PieceLayers } from '@svc/metainfo'
import { digestBytes, type Sha256Digest } from '@svc/ref'
import type { AnswerReader } from './answers.ts'

/** Piece layers: 32 bytes per piece, and at most 2 million pieces. */
const MAX_LAYERS_BYTES = 80 << 20

type ArtifactTorrentsDeps = Pick<Library, 'store' | 'documents' | 'leafLayers'> & {
  readonly answers: Pick<AnswerReader, 'parse'>
}

/** The store's manifests as the torrents that follow from them (spec doc.17). */
export class ArtifactTorrents {
  readonly #deps: ArtifactTorrentsDeps

  constructor(deps: ArtifactTorrentsDeps) {
    this.#deps = deps
  }

  /** Undefined when the manifest is not in the store. @throws LibraryError `E_CORRUPTION` */
  async of(manifestDigest: Sha256Digest): Promise<ArtifactTorrent | undefined> {
    // through the documents, which verify each read
    const manifest = await this.#deps.documents.sealedManifest(manifestDigest)
    return manifest && torrentOf(manifest)
  }

  /** The companions of an artifact that may leave; undefined if their document is absent, or none may leave. */
  async givenCompanions(digest: Sha256Digest, state: ArtifactState): Promise<Sealed<Companions> | undefined> {
    const document = await this.#deps.documents.companions(digest)
    return document && givenCompanions(document, state)
  }

  /**
   * Companions as a torrent (spec doc.22). Hashes them all, which are small, and makes their document a blob.
   * @returns undefined where one is missing. @throws LibraryError `E_CORRUPTION` for a damaged one
   */
  async ofCompanions(given: Sealed<Companions>, signal: AbortSignal): Promise<ArtifactTorrent | undefined> {
    const roots = new Map<Sha256Digest, Uint8Array | undefined>()
    for (const { digest, size } of given.document.files) {
      if (roots.has(digest)) continue
      if ((await this.#deps.store.stat(digest))?.sizeBytes !== size) return undefined
      const { merkleRoot } = await this.#deps.leafLayers.treeOf(digest, signal)
      roots.set(digest, merkleRoot && digestBytes(merkleRoot))
    }
    await writeDocument(this.#deps.store, given, signal)
    return companionsTorrent(given, (digest) => roots.get(digest))
  }

  /**
   * The verified piece layers of a complete artifact, from its record or the blobs' leaf layers. @throws LibraryError
   * `E_CORRUPTION` when the blobs do not have the manifest's roots
   */
  async layersOf(
    torrent: ArtifactTorrent,
    artifact: ArtifactState | undefined,
    signal: AbortSignal
  ): Promise<PieceLayers> {
    return (await this.recordedLayersOf(torrent, artifact)) ?? this.#deps.leafLayers.pieceLayers(torrent, { signal })
  }

  /** The layers named by the distribution record, if they are present, complete and verified. */
  async recordedLayersOf(
    torrent: ArtifactTorrent,
    artifact: ArtifactState | undefined
  ): Promise<PieceLayers | undefined> {
    if (artifact?.record === undefined) return undefined
    try {
      const bytes = await readSmallBlob(this.#deps.store, artifact.record)
      if (bytes === undefined) return undefined
      const record = parseRecord(bytes)
      if (record.torrent.infohash !== torrent.infohashText) return undefined
      const encoded = await readSmallBlob(this.#deps.store, record.torrent.pieceLayersDigest, MAX_LAYERS_BYTES)
      if (encoded === undefined) return undefined
      const { files, pieceLength } = torrent
      const about = { files, pieceLength }
      const { layers, missing } = await this.#deps.answers.parse('pieceLayers', encoded, about)
      return missing.length === 0 ? layers : undefined
    } catch {
      // a damaged record or layers blob is created again from the leaf layers, which are verified
      return undefined
    }
  }
}
