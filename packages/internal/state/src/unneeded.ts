import type { BlobInfo, DiskBlobStore, RemoveOptions } from '@svc/cas'
import type { ReaderLeases } from '@svc/internal-models'
import type { Sha256Digest } from '@svc/ref'
import type { LeafLayers } from './leaf-layers.ts'
import type { Needed } from './needed.ts'

interface UnneededDeps {
  readonly store: Pick<DiskBlobStore, 'remove'>
  readonly needed: Pick<Needed, 'blobs' | 'revision'>
  readonly leafLayers: Pick<LeafLayers, 'forget'>
  readonly readerLeases: Pick<ReaderLeases, 'removing'>
}

/**
 * Removes blobs one by one: each if, at that moment, the state does not need it and no lease keeps it. Changes of the
 * state are read before the next blob is judged, so nothing has to wait, and a crash at any point leaves all that is
 * needed.
 */
export class Unneeded {
  readonly #deps: UnneededDeps
  readonly #ignored: ReadonlySet<string>
  #needed: ReadonlySet<Sha256Digest> = new Set()
  #revision: number | undefined

  /** @param ignored as in `Needed.blobs` */
  constructor(deps: UnneededDeps, ignored: ReadonlySet<string> = new Set()) {
    this.#deps = deps
    this.#ignored = ignored
  }

  /** Reads the needs of the state, unless it is unchanged. @throws as `Needed.blobs` */
  async read(): Promise<void> {
    const { needed } = this.#deps
    // a change of the state during this walk restarts it
    while (this.#revision !== needed.revision) {
      const { revision } = needed
      this.#needed = await needed.blobs(this.#ignored)
      this.#revision = revision
    }
  }

  /** Removes a blob if `may` agrees. @returns the removed bytes. @throws as {@link read} */
  async take(digest: Sha256Digest, may: NonNullable<RemoveOptions['may']>): Promise<BlobInfo | undefined> {
    for (;;) {
      await this.read()
      if (this.#needed.has(digest)) return undefined
      let isStale = false
      const removed = await this.#deps.readerLeases.removing(digest, (isKept) =>
        this.#deps.store.remove(digest, {
          may: (blob) => {
            isStale = this.#deps.needed.revision !== this.#revision
            return !isStale && !isKept() && may(blob)
          }
        })
      )
      if (removed !== undefined) await this.#deps.leafLayers.forget(digest)
      if (!isStale) return removed
    }
  }
}
