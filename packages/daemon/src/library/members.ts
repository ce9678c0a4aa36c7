import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { DiskBlobStore } from '@svc/cas'
import type { ModelMember } from '@svc/client/protocol'
import type { Manifest, ModelIndex } from '@svc/manifest'
import { digestFromHex, type Sha256Digest } from '@svc/ref'
import { DaemonError } from '../errors.ts'
import type { Artifacts } from './artifacts.ts'
import type { Documents } from './documents.ts'
import { stampOf } from './stamp.ts'
import type { Usage } from './usage.ts'

export interface MembersDeps {
  readonly store: DiskBlobStore
  readonly documents: Documents
  readonly artifacts: Artifacts
  readonly usage: Usage
}

type Files = readonly { readonly digest: Sha256Digest; readonly size: number }[]
const MAX_KNOWN = 100_000

/**
 * The members of an index for people: size, what is present, and what is known of each. A manifest never changes, so it
 * is read once.
 */
export class Members {
  readonly #deps: MembersDeps
  readonly #files = new Map<Sha256Digest, Files>()

  constructor(deps: MembersDeps) {
    this.#deps = deps
  }

  /** The current corrupt blobs in quarantine. */
  async quarantined(): Promise<ReadonlySet<Sha256Digest>> {
    const names = await readdir(join(this.#deps.store.root, 'quarantine')).catch(() => [])
    return new Set(names.filter((name) => /^[0-9a-f]{64}-/.test(name)).map((name) => digestFromHex(name.slice(0, 64))))
  }

  /** In the order of the index, which is sorted by quant. @throws CorruptStateError */
  async of({ members }: Pick<ModelIndex, 'members'>, quarantined: ReadonlySet<Sha256Digest>): Promise<ModelMember[]> {
    const listed: ModelMember[] = []
    for (const { quant, manifest } of members) listed.push(await this.#member(quant, manifest, quarantined))
    return listed
  }

  async #member(quant: string, manifest: Sha256Digest, quarantined: ReadonlySet<Sha256Digest>): Promise<ModelMember> {
    const { store, artifacts, usage } = this.#deps
    const [files, state] = [await this.#filesOf(manifest), await artifacts.known(manifest)]
    const seen = new Set<Sha256Digest>()
    let missingBytes = 0
    let damaged = files === undefined && quarantined.has(manifest)
    for (const { digest, size } of files ?? []) {
      if (seen.has(digest)) continue
      seen.add(digest)
      if (stampOf(store.blobPath(digest))?.size === size) continue
      missingBytes += size
      damaged ||= quarantined.has(digest)
    }
    const complete = files !== undefined && missingBytes === 0
    const lastUsedAt = usage.lastUsedAt(manifest)
    return {
      quant,
      manifest,
      sizeBytes: (files ?? []).reduce((sum, { size }) => sum + size, 0),
      complete,
      private: state?.private ?? false,
      ...(state?.importedAt !== undefined && { importedAt: state.importedAt }),
      ...(lastUsedAt !== undefined && { lastUsedAt }),
      ...(!complete && { missingBytes }),
      ...(damaged && { damaged }),
      ...(state?.restricted === true && { restricted: true })
    }
  }

  async #filesOf(digest: Sha256Digest): Promise<Files | undefined> {
    const { store, documents } = this.#deps
    if (stampOf(store.blobPath(digest)) === undefined) return undefined
    const known = this.#files.get(digest)
    if (known !== undefined) return known
    let manifest: Manifest | undefined
    try {
      manifest = await documents.manifest(digest, { scan: true })
    } catch (error) {
      // the error is reported when the document itself is requested; the list continues
      if (!(error instanceof DaemonError)) throw error
      return undefined
    }
    if (manifest === undefined) return undefined
    const files = manifest.files.map((file) => ({ digest: file.digest, size: file.size }))
    if (this.#files.size >= MAX_KNOWN) this.#files.clear()
    this.#files.set(digest, files)
    return files
  }
}
