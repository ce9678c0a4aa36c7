import { hash } from 'node:crypto'
import type { Companions, Manifest } from '@svc/manifest'
import { digestFromHex, type Sha256Digest } from '@svc/ref'
import { LRUCache } from 'lru-cache'
import type { ArtifactState } from './artifact-record.ts'
import { type ArtifactSource, NO_HINTS } from './origin.ts'
import type { Provenance } from './provenance.ts'

/** An artifact that an import is making. All of it is known but its manifest's digest, which its weights decide. */
export interface ComingModel {
  readonly quant: string
  readonly manifest: Pick<Manifest, 'files' | 'annotations'>
  readonly upstreamConfig: string | undefined
  readonly companions: { readonly digest: Sha256Digest; readonly files: Companions['files'] } | undefined
}

/** A {@link ComingModel} as if it were here, under a digest that stands for its manifest's. */
export interface StandIn extends ComingModel {
  readonly standIn: Sha256Digest
  readonly by: ComingImport
  /** Of unknown access: its {@link ComingImport} knows it. */
  readonly state: ArtifactState
}

/** An import that is under way. */
export interface ComingImport {
  /** Of its operation. */
  readonly id: string
  /** `ns/name` */
  readonly name: string
  readonly source: ArtifactSource
  /** UTC, RFC 3339. */
  readonly beganAt: string
  /** The provenance of one artifact, or of all, by the bytes that are here now. */
  provenanceOf(manifest?: Pick<Manifest, 'files'>): Promise<Provenance>
  /** Whether the source was seen to give a blob: only then may its bytes leave as the source's. */
  hasGiven(blob: Sha256Digest): Promise<boolean>
  /** Empty until all but large files is here. */
  readonly models: StandIn[]
  /** Resolves when the models are known, or the import is over. */
  readonly described: PromiseWithResolvers<void>
}

const MAX_BECAME = 10_000

/** The models that the owner's imports are about to make, for mirrors. In memory only, as the jobs are. */
export class ComingModels {
  readonly #imports = new Set<ComingImport>()
  readonly #models = new Map<Sha256Digest, StandIn>()
  /** The manifests of finished imports, by the digests that stood for them. */
  readonly #became = new LRUCache<Sha256Digest, Sha256Digest>({ max: MAX_BECAME })
  readonly #listeners: ((standIn: Sha256Digest) => void)[] = []

  /** Calls `onEnd` with each stand-in whose import has ended. */
  listen(onEnd: (standIn: Sha256Digest) => void): void {
    this.#listeners.push(onEnd)
  }

  /** Whether a mirror shows pending imports. */
  get isWatched(): boolean {
    return this.#listeners.length > 0
  }

  get imports(): readonly ComingImport[] {
    return [...this.#imports]
  }

  /** Undefined if it stands for nothing, or its import is over. */
  get(standIn: Sha256Digest): StandIn | undefined {
    return this.#models.get(standIn)
  }

  /** The manifest that a stand-in became; any other digest unchanged. */
  digestOf(manifest: Sha256Digest): Sha256Digest {
    return this.#became.get(manifest) ?? manifest
  }

  begin(facts: Omit<ComingImport, 'models' | 'described'>): ComingImport {
    const begun = { ...facts, models: [], described: Promise.withResolvers<void>() }
    this.#imports.add(begun)
    return begun
  }

  describe(by: ComingImport, models: readonly ComingModel[]): void {
    for (const model of models) {
      const { quant, manifest, companions } = model
      const text = JSON.stringify([by.name, quant, manifest, companions?.digest])
      const standIn = digestFromHex(hash('sha256', text))
      const state: ArtifactState = {
        manifestDigest: standIn,
        source: { ...by.source, ...(companions && { companions: companions.digest }) },
        provenance: { access: 'unknown' },
        pinned: false,
        hints: NO_HINTS,
        beganAt: by.beganAt,
        incomplete: true
      }
      const made = { ...model, by, standIn, state }
      by.models.push(made)
      this.#models.set(standIn, made)
    }
    by.described.resolve()
  }

  /** The artifacts have their names, or none were made. Idempotent. */
  end(
    by: ComingImport | undefined,
    made: readonly { readonly quant: string; readonly manifest: Sha256Digest }[] = []
  ): void {
    if (by === undefined) return
    this.#imports.delete(by)
    by.described.resolve()
    for (const model of by.models.splice(0)) {
      const { quant, standIn } = model
      const manifest = made.find((each) => each.quant === quant)?.manifest
      if (manifest !== undefined) this.#became.set(standIn, manifest)
      // another import of the same may be under way
      if (this.#models.get(standIn) !== model) continue
      this.#models.delete(standIn)
      for (const listener of this.#listeners) listener(standIn)
    }
  }
}
