import type { BlobStore } from '@svc/cas'
import { isObject } from '@svc/internal-http/json'
import { ManifestError, parseCompanions, parseStoredManifest } from '@svc/manifest'
import { digestFromHex, isDigest, type Sha256Digest } from '@svc/ref'
import { restoredRecord } from './artifact-record.ts'
import { LibraryError } from './library-error.ts'
import { restoredProvenance } from './provenance.ts'
import { amendedRecord, type Fields, fieldsOf } from './record.ts'
import { readSmallBlob } from './small-blob.ts'

const RECORD = /^(artifacts|arrivals)\/([0-9a-f]{64})\.json$/
/** Stand for a document whose own list of files is not known. */
const [MANIFEST, COMPANIONS] = ['manifest', 'companions']

/**
 * The state files of a backup as they are restored. What they say of who may have bytes counts for those that the backup
 * has: whoever wrote it may know the digest of what its owner imports later (spec add.37).
 */
export class RestoredRecords {
  readonly #store: BlobStore
  readonly #has: (digest: Sha256Digest) => boolean

  /** @param has whether the backup had a blob, so that it is in the store */
  constructor(store: BlobStore, has: (digest: Sha256Digest) => boolean) {
    this.#store = store
    this.#has = has
  }

  /** @param path below `state/` @returns undefined for a file that is not restored */
  async of(path: string, bytes: Uint8Array): Promise<Uint8Array | undefined> {
    // the request of an interrupted job is its owner's word, which a backup is not
    if (path.startsWith('jobs/')) return undefined
    const [, folder, hex] = RECORD.exec(path) ?? []
    const restored = restoredRecord(bytes)
    if (hex === undefined) return restored
    const digest = digestFromHex(hex)
    // nobody saw where bytes came from that are not here
    if (folder === 'arrivals') return this.#has(digest) ? restored : undefined
    const fields = fieldsOf(restored)
    const lacking = fields && (await this.#lackingOf(digest, fields))
    return lacking === undefined ? restored : amendedRecord(restored, (before) => withheld(before, lacking))
  }

  /**
   * Names of the files of an artifact, and of those beside it, that the backup does not have, and that nobody asks about
   * later; undefined if it has all files.
   */
  async #lackingOf(
    manifestDigest: Sha256Digest,
    { source, incomplete, away, companions }: Fields
  ): Promise<string[] | undefined> {
    const { kind, companions: ofSource } = isObject(source) ? source : {}
    const digests = [...(isObject(companions) ? Object.values(companions) : []), ofSource]
    const documents = new Set(digests.flatMap((each) => (isDigest(each) ? [each] : [])))
    const files = await this.#lackingIn(manifestDigest, MANIFEST, filesOfManifest)
    const beside: string[] = []
    for (const each of documents) beside.push(...(await this.#lackingIn(each, COMPANIONS, filesOfCompanions)))
    if (files.length + beside.length === 0) return undefined
    // what an unfinished pinned import takes from the store later is unproven anyway
    const isPending = kind === 'bt' && incomplete === true && away !== true
    return isPending ? beside : [...files, ...beside]
  }

  async #lackingIn(digest: Sha256Digest, name: string, filesOf: typeof filesOfManifest): Promise<string[]> {
    const bytes = this.#has(digest) ? await readSmallBlob(this.#store, digest).catch(unlessOfDisk) : undefined
    const files = bytes && filesOf(bytes)
    return files?.filter((file) => file.size > 0 && !this.#has(file.digest)).map((file) => file.name) ?? [name]
  }
}

interface Listed {
  readonly name: string
  readonly size: number
  readonly digest: Sha256Digest
}

const filesOfManifest = (bytes: Uint8Array): readonly Listed[] | undefined =>
  unlessMalformed(() => parseStoredManifest(bytes).files)

const filesOfCompanions = (bytes: Uint8Array): readonly Listed[] | undefined =>
  unlessMalformed(() => parseCompanions(bytes).files.map(({ path: name, ...file }) => ({ name, ...file })))

function unlessMalformed<T>(parse: () => T): T | undefined {
  try {
    return parse()
  } catch (error) {
    if (error instanceof ManifestError) return undefined
    throw error
  }
}

function unlessOfDisk(error: unknown): undefined {
  if (error instanceof LibraryError && error.code === 'E_CORRUPTION') return undefined
  throw error
}

// A value that cannot be read withholds the artifact as it is
const withheld = ({ provenance, ...fields }: Fields, lacking: readonly string[]): Fields => ({
  ...fields,
  provenance: restoredProvenance(provenance, lacking)
})
