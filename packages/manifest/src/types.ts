import type { Sha256Digest } from '@svc/ref'

/** Kinds of manifest files, in their order within a manifest (spec doc.7). */
export type FileKind =
  | 'config'
  | 'weights.gguf'
  | 'weights.safetensors'
  | 'weights.aux'
  | 'tokenizer'
  | 'chat-template'
  | 'adapter'
  | 'code'
  | 'opaque'

/**
 * A file of an artifact. `size` is in bytes; `part` counts shards from 1; spec doc.4 says which kinds have which
 * fields.
 */
export interface ManifestFile {
  readonly kind: FileKind
  /** Artifact-relative path, unique; the first segment is never `manifest`. */
  readonly name: string
  readonly digest: Sha256Digest
  readonly size: number
  /** `sha256:` + the BEP 52 pieces root; absent for an empty file. */
  readonly bt?: { readonly merkleRoot: Sha256Digest }
  readonly part?: number
  readonly role?: string
  readonly variant?: string
  readonly runtime?: string
}

/**
 * An artifact: the files of one model in one quant, in the order of the kinds, with annotations. Its address is the
 * digest of its canonical JSON.
 */
export interface Manifest {
  readonly schemaVersion: 1
  readonly artifactType: 'model'
  readonly files: readonly ManifestFile[]
  readonly annotations: Readonly<Record<string, string>>
}

/** One quant of a repository: the digests of its manifest and its distribution record. */
export interface IndexMember {
  readonly quant: string
  readonly manifest: Sha256Digest
  readonly distribution: Sha256Digest
}

/** The quants of a repository at one moment, sorted by quant, each once. */
export interface ModelIndex {
  readonly schemaVersion: 1
  readonly artifactType: 'model-index'
  readonly members: readonly IndexMember[]
}

/**
 * How the swarm distributes an artifact: the torrent that follows from its manifest. It is a document of its own
 * because it names the manifest's digest.
 */
export interface DistributionRecord {
  readonly schemaVersion: 1
  readonly artifactType: 'distribution'
  readonly manifestDigest: Sha256Digest
  readonly torrent: {
    /** `btmh:1220<64 hex>` */
    readonly infohash: string
    readonly name: string
    readonly pieceLength: number
    readonly pieceLayersDigest: Sha256Digest
  }
}

/** A document with the exact bytes that its digest names. */
export interface Sealed<T> {
  readonly document: T
  readonly bytes: Uint8Array
  readonly digest: Sha256Digest
}
