import type { Manifest } from '@svc/manifest'
import type { Sha256Digest } from '@svc/ref'
import type { Documents } from './documents.ts'
import { LibraryError } from './library-error.ts'
import { Revised } from './revised.ts'
import type { StoreState } from './state.ts'

/**
 * Which artifacts' manifests name a blob, so that an import does not read all manifests for each of its files.
 * Manifests never change: only those of new artifacts are read, and callers ignore artifacts that are gone.
 */
export class BlobIndex {
  readonly #deps: Pick<StoreState, 'artifacts' | 'documents'>
  readonly #byBlob = new Map<Sha256Digest, Sha256Digest[]>()
  readonly #indexed = new Set<Sha256Digest>()
  /** Artifacts whose manifests have yet to be read, or could not be: these are tried again each time. */
  readonly #unread = new Set<Sha256Digest>()
  readonly #renewed = new Revised<void>()

  constructor(deps: Pick<StoreState, 'artifacts' | 'documents'>) {
    this.#deps = deps
  }

  async upToDate(): Promise<ReadonlyMap<Sha256Digest, readonly Sha256Digest[]>> {
    await this.#renewed.at(this.#deps.artifacts.changes, () => this.#renew())
    await this.#readRest()
    return this.#byBlob
  }

  async #renew(): Promise<void> {
    const digests = await this.#deps.artifacts.digests()
    this.#unread.clear()
    for (const digest of digests) if (!this.#indexed.has(digest)) this.#unread.add(digest)
    await this.#readRest()
  }

  async #readRest(): Promise<void> {
    for (const manifestDigest of this.#unread) {
      const manifest = await manifestIn(this.#deps.documents, manifestDigest)
      // another call may have indexed it meanwhile
      if (manifest === undefined || this.#indexed.has(manifestDigest)) continue
      this.#unread.delete(manifestDigest)
      this.#indexed.add(manifestDigest)
      for (const digest of new Set(manifest.files.map((file) => file.digest))) {
        const named = this.#byBlob.get(digest)
        if (named === undefined) this.#byBlob.set(digest, [manifestDigest])
        else named.push(manifestDigest)
      }
    }
  }
}

/** Undefined where it is absent or damaged. */
export async function manifestIn(documents: Documents, digest: Sha256Digest): Promise<Manifest | undefined> {
  try {
    return await documents.manifest(digest, { scan: true })
  } catch (error) {
    if (!(error instanceof LibraryError)) throw error
    return undefined
  }
}
