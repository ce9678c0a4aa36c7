import type { Manifest } from '@svc/manifest'
import type { Sha256Digest } from '@svc/ref'
import { DaemonError } from '../errors.ts'
import type { Artifacts } from './artifacts.ts'
import type { Documents } from './documents.ts'

interface Indexed {
  /** Of the artifacts, when they were listed. */
  changes: number
  /** Artifacts whose manifests could not be read. */
  unread: readonly Sha256Digest[]
  readonly artifacts: Set<Sha256Digest>
  readonly byBlob: Map<Sha256Digest, Sha256Digest[]>
}

/**
 * Which artifacts' manifests name a blob, so that an import does not read all manifests for each of its files.
 * Manifests never change: only those of new artifacts are read, and callers ignore artifacts that are gone. Garbage
 * collection may drop the index, which is then rebuilt.
 */
export class BlobIndex {
  readonly #deps: { readonly artifacts: Artifacts; readonly documents: Documents }
  #kept: WeakRef<Indexed> | undefined
  #renewing: Promise<Indexed> | undefined

  constructor(deps: { readonly artifacts: Artifacts; readonly documents: Documents }) {
    this.#deps = deps
  }

  async upToDate(): Promise<ReadonlyMap<Sha256Digest, readonly Sha256Digest[]>> {
    const { artifacts } = this.#deps
    for (;;) {
      const kept = this.#kept?.deref()
      const isCurrent = kept !== undefined && kept.changes === artifacts.changes && kept.unread.length === 0
      if (isCurrent && this.#renewing === undefined) return kept.byBlob
      const changes = artifacts.changes
      this.#renewing ??= this.#renew(kept).finally(() => {
        this.#renewing = undefined
      })
      const renewed = await this.#renewing
      // a read that began before a change may lack it
      if (renewed.changes >= changes) return renewed.byBlob
    }
  }

  async #renew(kept: Indexed | undefined): Promise<Indexed> {
    const { artifacts, documents } = this.#deps
    const indexed: Indexed = kept ?? { changes: -1, unread: [], artifacts: new Set(), byBlob: new Map() }
    const { changes } = artifacts
    const unread: Sha256Digest[] = []
    for (const manifestDigest of indexed.changes === changes ? indexed.unread : await artifacts.digests()) {
      if (indexed.artifacts.has(manifestDigest)) continue
      const manifest = await manifestIn(documents, manifestDigest)
      if (manifest === undefined) {
        unread.push(manifestDigest)
        continue
      }
      indexed.artifacts.add(manifestDigest)
      for (const digest of new Set(manifest.files.map((file) => file.digest))) {
        const named = indexed.byBlob.get(digest)
        if (named === undefined) indexed.byBlob.set(digest, [manifestDigest])
        else named.push(manifestDigest)
      }
    }
    indexed.changes = changes
    indexed.unread = unread
    this.#kept = new WeakRef(indexed)
    return indexed
  }
}

/** Undefined where it is absent or damaged. */
export async function manifestIn(documents: Documents, digest: Sha256Digest): Promise<Manifest | undefined> {
  try {
    return await documents.manifest(digest, { scan: true })
  } catch (error) {
    if (!(error instanceof DaemonError)) throw error
    return undefined
  }
}
