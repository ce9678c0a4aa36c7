import { hash } from 'node:crypto'
import type { DiskBlobStore } from '@svc/cas'
import { type FilePort, nodeFilePort, readWhole } from '@svc/internal-files'
import {
  type Companions,
  MAX_DOCUMENT_BYTES,
  type Manifest,
  ManifestError,
  type ModelIndex,
  type Sealed
} from '@svc/manifest'
import { digestFromHex, type Sha256Digest } from '@svc/ref'
import { LRUCache } from 'lru-cache'
import { DOCUMENTS, type DocumentKinds, type DocumentReader } from './document-reader.ts'
import { LibraryError } from './library-error.ts'
import { type FileStamp, isUnchanged, stampOf } from './stamp.ts'

type DocumentProblem = 'absent' | 'corrupt' | 'no-document'
class DocumentError extends Error {
  override readonly name = 'DocumentError'
  readonly problem: DocumentProblem

  constructor(problem: DocumentProblem, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.problem = problem
  }
}

interface CachedDocument<T> {
  readonly path: string
  readonly stamp: FileStamp
  readonly document: T
  readonly sizeBytes: number
}

export interface DocumentUse {
  /** One of very many reads, such as for a list of all models: it uses free space of the cache, but evicts nothing. */
  readonly scan?: boolean
}

export interface CompanionsUse extends DocumentUse {
  /** A document that is here and cannot be read is an error: it may name blobs that nothing else names. */
  readonly strict?: boolean
}

/** Parsed documents of one kind, valid while their blob's file has not changed. */
class DocumentCache<T> {
  readonly #store: Pick<DiskBlobStore, 'blobPath'>
  readonly #port: FilePort
  readonly #parse: (bytes: Uint8Array) => Promise<T>
  readonly #cache: LRUCache<Sha256Digest, CachedDocument<T>>

  /** Keeps documents of `maxBytes` in total, measured on disk; parsed they take about three times that. */
  constructor(
    store: Pick<DiskBlobStore, 'blobPath'>,
    port: FilePort,
    parse: (bytes: Uint8Array) => Promise<T>,
    maxBytes: number
  ) {
    this.#store = store
    this.#port = port
    this.#parse = parse
    this.#cache = new LRUCache({ maxSize: maxBytes, sizeCalculation: ({ sizeBytes }) => Math.max(1, sizeBytes) })
  }

  cached(digest: Sha256Digest): T | undefined {
    const hit = this.#cache.get(digest)
    if (hit === undefined) return undefined
    if (isUnchanged(hit.path, hit.stamp)) return hit.document
    this.#cache.delete(digest)
    return undefined
  }

  /** @throws DocumentError; I/O errors pass unchanged. */
  async read(digest: Sha256Digest, { scan = false }: DocumentUse = {}): Promise<T> {
    return this.cached(digest) ?? (await this.readWithBytes(digest, scan)).document
  }

  /** Reads from the disk, and returns the bytes, too. @throws as {@link read} */
  async readWithBytes(
    digest: Sha256Digest,
    scan: boolean
  ): Promise<{ readonly bytes: Uint8Array; readonly document: T }> {
    const path = this.#store.blobPath(digest)
    const stamp = stampOf(path)
    const bytes = stamp === undefined ? undefined : await readBlob(this.#port, path, digest)
    if (bytes === undefined) throw new DocumentError('absent', `the blob ${digest} is not in the store`)
    let document: T
    try {
      document = await this.#parse(bytes)
    } catch (cause) {
      if (!(cause instanceof ManifestError)) throw cause
      throw new DocumentError('no-document', `${digest}: ${cause.message}`, cause)
    }
    if (stamp !== undefined) this.#keep(digest, { path, stamp, document, sizeBytes: bytes.length }, scan)
    return { bytes, document }
  }

  #keep(digest: Sha256Digest, entry: CachedDocument<T>, scan: boolean): void {
    const { calculatedSize, maxSize } = this.#cache
    if (!scan || calculatedSize + entry.sizeBytes <= maxSize) this.#cache.set(digest, entry)
  }
}

/**
 * Documents decide how other bytes are read, so they are never trusted unverified. @returns undefined when absent
 * @throws DocumentError `no-document` when it is too large, `corrupt` when it does not match its digest
 */
async function readBlob(port: FilePort, path: string, digest: Sha256Digest): Promise<Uint8Array | undefined> {
  let bytes
  try {
    bytes = await readWhole(port, path, MAX_DOCUMENT_BYTES)
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause
    const what = `${digest} is larger than ${MAX_DOCUMENT_BYTES} bytes, so it is not a document`
    throw new DocumentError('no-document', what, cause)
  }
  const actual = bytes && digestFromHex(hash('sha256', bytes))
  if (actual === undefined || actual === digest) return bytes
  throw new DocumentError('corrupt', `${digest} is corrupt in the store: its bytes are ${actual}`)
}

/** Every resolve needs an index: this keeps those of tens of thousands of small repositories. */
const MAX_INDEX_BYTES = 16 << 20
const MAX_MANIFEST_BYTES = 4 << 20
const MAX_COMPANIONS_BYTES = 4 << 20

/** For programs without a loop that others wait for. */
const HERE: Pick<DocumentReader, 'parse'> = {
  parse: async (kind, bytes, ...about) => DOCUMENTS.parsers[kind](bytes, ...about)
}

export class Documents {
  readonly #indexes: DocumentCache<ModelIndex>
  readonly #manifests: DocumentCache<Manifest>
  readonly #companions: DocumentCache<Companions>

  readonly #reader: Pick<DocumentReader, 'parse'>

  constructor(
    store: Pick<DiskBlobStore, 'blobPath'>,
    port: FilePort = nodeFilePort,
    reader: Pick<DocumentReader, 'parse'> = HERE
  ) {
    const cacheOf = <Kind extends 'index' | 'storedManifest' | 'companions'>(kind: Kind, maxBytes: number) =>
      new DocumentCache(store, port, (bytes) => reader.parse(kind, bytes), maxBytes)
    this.#reader = reader
    this.#indexes = cacheOf('index', MAX_INDEX_BYTES)
    this.#manifests = cacheOf('storedManifest', MAX_MANIFEST_BYTES)
    this.#companions = cacheOf('companions', MAX_COMPANIONS_BYTES)
  }

  /** What is read of a document's bytes. @throws as `DocumentReader.parse` */
  parse<Kind extends keyof DocumentKinds>(kind: Kind, bytes: Uint8Array): Promise<DocumentKinds[Kind]['found']> {
    return this.#reader.parse(kind, bytes)
  }

  cachedIndex(digest: Sha256Digest): ModelIndex | undefined {
    return this.#indexes.cached(digest)
  }

  /** @throws LibraryError `E_NO_INDEX`, `E_INVALID_INDEX` */
  async index(digest: Sha256Digest, use?: DocumentUse): Promise<ModelIndex> {
    try {
      return await this.#indexes.read(digest, use)
    } catch (cause) {
      if (!(cause instanceof DocumentError)) throw cause
      throw cause.problem === 'absent'
        ? new LibraryError('E_NO_INDEX', `the index ${digest} is not in the store; import the model again`, { cause })
        : new LibraryError('E_INVALID_INDEX', `the index is not valid: ${cause.message}`, { cause })
    }
  }

  /**
   * Undefined when there are none in the store that can be used: they can be fetched again. @throws LibraryError
   * `E_CORRUPTION` only with `strict`
   */
  async companions(
    digest: Sha256Digest,
    { strict = false, ...use }: CompanionsUse = {}
  ): Promise<Companions | undefined> {
    try {
      return await this.#companions.read(digest, use)
    } catch (cause) {
      if (!(cause instanceof DocumentError)) throw cause
      if (strict && cause.problem !== 'absent')
        throw new LibraryError('E_CORRUPTION', `a list of companions cannot be read: ${cause.message}`, { cause })
      return undefined
    }
  }

  /**
   * Undefined when the manifest is not in the store.
   * @throws LibraryError `E_CORRUPTION` for damaged bytes, `E_UNKNOWN_REF` for an intact blob that is not a manifest:
   *   the reference names something else
   */
  manifest(digest: Sha256Digest, use?: DocumentUse): Promise<Manifest | undefined> {
    return this.#manifest(digest, () => this.#manifests.read(digest, use))
  }

  /** {@link manifest}, of one that must be here. @throws as that; LibraryError `E_NOT_FOUND` */
  async requireManifest(digest: Sha256Digest): Promise<Manifest> {
    const manifest = await this.manifest(digest)
    if (manifest !== undefined) return manifest
    throw new LibraryError('E_NOT_FOUND', `the manifest ${digest} is not in the store`)
  }

  /** {@link manifest} with its bytes, from one read. Evicts no other from the cache. @throws as {@link manifest} */
  sealedManifest(digest: Sha256Digest): Promise<Sealed<Manifest> | undefined> {
    return this.#manifest(digest, async () => ({ digest, ...(await this.#manifests.readWithBytes(digest, true)) }))
  }

  async #manifest<T>(digest: Sha256Digest, read: () => Promise<T>): Promise<T | undefined> {
    try {
      return await read()
    } catch (cause) {
      if (!(cause instanceof DocumentError)) throw cause
      if (cause.problem === 'absent') return undefined
      if (cause.problem === 'no-document') {
        const what = `${digest} is in the store, but it is not a manifest; a reference by digest names a model's manifest`
        throw new LibraryError('E_UNKNOWN_REF', what, { cause })
      }
      throw new LibraryError('E_CORRUPTION', `the manifest is not valid: ${cause.message}`, { cause })
    }
  }
}
