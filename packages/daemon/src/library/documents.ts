import { createHash } from 'node:crypto'
import { CasError, type DiskBlobStore } from '@svc/cas'
import { type Manifest, type ModelIndex, parseIndex, parseManifest } from '@svc/manifest'
import { digestFromBytes, type Sha256Digest } from '@svc/ref'
import { DaemonError } from '../errors.ts'
import { MAX_DOCUMENT_BYTES, readWhole } from './small-blob.ts'
import { type FileStamp, sameStamp, stampOf } from './stamp.ts'

/** Why a document could not be used. */
type DocumentProblem = 'absent' | 'corrupt' | 'no-document'
class DocumentError extends Error {
  override readonly name = 'DocumentError'
  readonly problem: DocumentProblem
  readonly digest: Sha256Digest

  constructor(problem: DocumentProblem, digest: Sha256Digest, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.problem = problem
    this.digest = digest
  }
}

interface Cached<T> {
  readonly path: string
  readonly stamp: FileStamp
  readonly document: T
}

/** Parsed documents of one kind, kept while their blob's file is the one that was parsed. */
class DocumentCache<T> {
  readonly #store: DiskBlobStore
  readonly #parse: (bytes: Uint8Array) => T
  readonly #bound: number
  readonly #cache = new Map<Sha256Digest, Cached<T>>()

  constructor(store: DiskBlobStore, parse: (bytes: Uint8Array) => T, bound: number) {
    this.#store = store
    this.#parse = parse
    this.#bound = bound
  }

  cached(digest: Sha256Digest): T | undefined {
    const hit = this.#cache.get(digest)
    if (hit === undefined) return undefined
    const stamp = stampOf(hit.path)
    if (stamp !== undefined && sameStamp(stamp, hit.stamp)) return hit.document
    this.#cache.delete(digest)
    return undefined
  }

  /** @throws DocumentError; I/O errors pass through. */
  async read(digest: Sha256Digest): Promise<T> {
    const hit = this.cached(digest)
    if (hit !== undefined) return hit
    const path = this.#store.blobPath(digest)
    const stamp = stampOf(path)
    const bytes = await readBlob(this.#store, digest)
    if (bytes === undefined) throw new DocumentError('absent', digest, `the blob ${digest} is not in the store`)
    let document: T
    try {
      document = this.#parse(bytes)
    } catch (cause) {
      throw new DocumentError('no-document', digest, `${digest}: ${(cause as Error).message}`, cause)
    }
    if (stamp !== undefined) {
      if (this.#cache.size >= this.#bound) {
        const [oldest] = this.#cache.keys()
        this.#cache.delete(oldest!)
      }
      this.#cache.set(digest, { path, stamp, document })
    }
    return document
  }
}

/**
 * A small blob whole, hashed again on the way (a document decides what other bytes mean, so it is never taken on trust).
 * @returns undefined when it is absent. @throws DocumentError `no-document` when it is too large, `corrupt` when it is no longer its digest.
 */
async function readBlob(store: DiskBlobStore, digest: Sha256Digest): Promise<Uint8Array | undefined> {
  let reader
  try {
    reader = await store.open(digest)
  } catch (error) {
    if (error instanceof CasError && error.code === 'E_NOT_FOUND') return undefined
    throw error
  }
  try {
    if (reader.sizeBytes > MAX_DOCUMENT_BYTES) {
      throw new DocumentError(
        'no-document',
        digest,
        `${digest} is larger than ${MAX_DOCUMENT_BYTES} bytes, so it is no document`
      )
    }
    const bytes = await readWhole(reader)
    const actual = digestFromBytes(createHash('sha256').update(bytes).digest())
    if (actual !== digest)
      throw new DocumentError('corrupt', digest, `${digest} is corrupt in the store: its bytes are ${actual}`)
    return bytes
  } finally {
    await reader.close()
  }
}

/** Reads and keeps the store's documents. */
export class Documents {
  readonly #indexes: DocumentCache<ModelIndex>
  readonly #manifests: DocumentCache<Manifest>

  constructor(store: DiskBlobStore) {
    this.#indexes = new DocumentCache(store, (bytes) => parseIndex(bytes), 20_000)
    this.#manifests = new DocumentCache(store, (bytes) => parseManifest(bytes), 500)
  }

  cachedIndex(digest: Sha256Digest): ModelIndex | undefined {
    return this.#indexes.cached(digest)
  }

  /** @throws DaemonError `E_NO_INDEX`, `E_INVALID_INDEX` */
  async index(digest: Sha256Digest): Promise<ModelIndex> {
    try {
      return await this.#indexes.read(digest)
    } catch (cause) {
      if (!(cause instanceof DocumentError)) throw cause
      throw cause.problem === 'absent'
        ? new DaemonError('E_NO_INDEX', `the index ${digest} is not in the store; import the model again`, { cause })
        : new DaemonError('E_INVALID_INDEX', `the index is not valid: ${cause.message}`, { cause })
    }
  }

  /**
   * undefined when the manifest is not in the store.
   * @throws DaemonError `E_CORRUPTION` for bytes that went bad, `E_UNKNOWN_REF` for a sound blob that is no manifest: whoever named it
   *   named something else
   */
  async manifest(digest: Sha256Digest): Promise<Manifest | undefined> {
    try {
      return await this.#manifests.read(digest)
    } catch (cause) {
      if (!(cause instanceof DocumentError)) throw cause
      if (cause.problem === 'absent') return undefined
      if (cause.problem === 'no-document') {
        const what = `${digest} is in the store, but it is no manifest; a reference by digest names a model's manifest`
        throw new DaemonError('E_UNKNOWN_REF', what, { cause })
      }
      throw new DaemonError('E_CORRUPTION', `the manifest is not valid: ${cause.message}`, { cause })
    }
  }
}
