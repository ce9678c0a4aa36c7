import type { DiskBlobStore } from '@svc/cas'
import type { Sha256Digest } from '@svc/ref'
import { DaemonError } from '../errors.ts'
import type { Arrivals } from './arrivals.ts'
import { artifactOf } from './artifact-record.ts'
import type { ArtifactState, Artifacts } from './artifacts.ts'
import type { Documents } from './documents.ts'
import type { ArtifactSource } from './origin.ts'
import { isPrivate, type Provenance, verdictOf } from './provenance.ts'
import type { UnreadableStateError } from './strict.ts'

export interface HoldingsDeps {
  readonly store: Pick<DiskBlobStore, 'stat' | 'partialBytes'>
  readonly artifacts: Artifacts
  readonly documents: Documents
  readonly arrivals: Arrivals
}

/** The name of a source, as far as what it gave once tells that it has it still. */
export const sourceKey = ({ kind, repo, revision }: ArtifactSource): string =>
  `${kind}:${repo?.toLowerCase() ?? revision ?? ''}`

type Holder = Pick<ArtifactState, 'manifestDigest' | 'source' | 'provenance' | 'incomplete'>
type Holders = ReadonlyMap<Sha256Digest, readonly Holder[]>

/** Of blobs that are here: which artifacts have them, and what follows for another source that names them (spec add.37). */
export class Holdings {
  readonly arrivals: Arrivals
  readonly #deps: HoldingsDeps
  #asked: { readonly revision: number; readonly byManifest: Map<Sha256Digest, Promise<readonly string[]>> } = {
    revision: -1,
    byManifest: new Map()
  }

  constructor(deps: HoldingsDeps) {
    this.#deps = deps
    this.arrivals = deps.arrivals
  }

  /**
   * Which of the blobs a source may pass on although it did not give them just now: an artifact that everybody may have
   * has them, the same source gave them before at the same commit, or an import from it that was not finished.
   */
  async proven(digests: readonly Sha256Digest[], source: ArtifactSource): Promise<ReadonlySet<Sha256Digest>> {
    const proven = new Set<Sha256Digest>()
    if (digests.length === 0) return proven
    const holders = await this.#holders(new Set(digests))
    const key = sourceKey(source)
    for (const digest of new Set(digests)) {
      const states = holders.get(digest) ?? []
      const isProven =
        states.length === 0
          ? await this.arrivals.isAlone(digest, key, { isBlob: true })
          : states.some((state) => verdictOf(state, 'export').given || gaveItself(state, source))
      if (isProven) proven.add(digest)
    }
    return proven
  }

  /**
   * Names of a pinned artifact's weights and adapters that are here already and that its swarm would not be seen to give. What an
   * earlier fetch of the same artifact brought is its own.
   */
  async unprovenOf(manifestDigest: Sha256Digest): Promise<readonly string[]> {
    const { artifacts, documents, store } = this.#deps
    const { files = [] } = (await documents.manifest(manifestDigest)) ?? {}
    const heavy = files.filter(({ kind }) => kind.startsWith('weights.') || kind === 'adapter')
    const here: (typeof heavy)[number][] = []
    for (const file of heavy)
      if (store.partialBytes(file.digest) > 0 || (await store.stat(file.digest)) !== undefined) here.push(file)
    if (here.length === 0) return []
    const holders = await this.#holders(new Set(here.map(({ digest }) => digest)))
    const isKnown = (await artifacts.known(manifestDigest)) !== undefined
    const unproven: string[] = []
    for (const { name, digest } of here) {
      const states = holders.get(digest) ?? []
      const isProven =
        states.length === 0
          ? isKnown && !(await this.arrivals.has(digest))
          : states.some((state) => verdictOf(state, 'export').given)
      if (!isProven) unproven.push(name)
    }
    return unproven
  }

  /** {@link unprovenOf}, for a door that asks at each request: remembered until an artifact or an arrival changes. */
  unprovenNow(manifestDigest: Sha256Digest): Promise<readonly string[]> {
    const revision = this.#deps.artifacts.changes + this.arrivals.changes
    if (this.#asked.revision !== revision) this.#asked = { revision, byManifest: new Map() }
    const { byManifest } = this.#asked
    const known = byManifest.get(manifestDigest)
    if (known !== undefined) return known
    const asked = this.unprovenOf(manifestDigest)
    byManifest.set(manifestDigest, asked)
    asked.catch(() => byManifest.delete(manifestDigest))
    return asked
  }

  /** What bytes that the owner has on disk inherit: they are here through nothing but sources that are not public. */
  async inherited(digests: readonly Sha256Digest[]): Promise<ReadonlyMap<Sha256Digest, Provenance>> {
    const inherited = new Map<Sha256Digest, Provenance>()
    if (digests.length === 0) return inherited
    for (const [digest, states] of await this.#holders(new Set(digests))) {
      if (!states.every(isForeign)) continue
      const { decision: _, ...facts } = states[0]!.provenance
      inherited.set(digest, facts)
    }
    return inherited
  }

  /**
   * Complete artifacts only: what another one names is perhaps not here through it. One whose record cannot be read counts, as from where
   * nobody could say.
   */
  async #holders(digests: ReadonlySet<Sha256Digest>): Promise<Holders> {
    const { documents } = this.#deps
    const holders = new Map<Sha256Digest, Holder[]>()
    for (const state of await this.#states()) {
      if (state.incomplete === true) continue
      const manifest = await documents.manifest(state.manifestDigest, { scan: true }).catch((error: unknown) => {
        // nobody can tell what it has: it vouches for nothing
        if (!(error instanceof DaemonError)) throw error
        return undefined
      })
      for (const digest of new Set(manifest?.files.map((file) => file.digest))) {
        if (!digests.has(digest)) continue
        const states = holders.get(digest) ?? []
        holders.set(digest, states)
        states.push(state)
      }
    }
    return holders
  }

  async #states(): Promise<Holder[]> {
    const states: Holder[] = []
    const unreadable: Holder[] = []
    const onUnreadable = ({ file }: UnreadableStateError): void => {
      const manifestDigest = artifactOf(file)
      if (manifestDigest !== undefined)
        unreadable.push({ manifestDigest, source: { kind: 'local' }, provenance: { access: 'unknown' } })
    }
    for await (const state of this.#deps.artifacts.list(onUnreadable, { cached: true })) states.push(state)
    return [...states, ...unreadable]
  }
}

/**
 * The same commit of the same repository gave the artifact's bytes before, when it was not public perhaps. The repository's name alone
 * proves nothing: another commit, or whoever has the name now, can list digests of bytes that it never had. And what its owner keeps may be here by
 * another way that has gone since.
 */
const gaveItself = ({ source, provenance }: Holder, now: ArtifactSource): boolean =>
  source.repo !== undefined &&
  source.revision !== undefined &&
  source.revision === now.revision &&
  sourceKey(source) === sourceKey(now) &&
  provenance.unproven === undefined &&
  !isPrivate({ provenance })

/** The owner had it from somebody who does not give it to everybody. */
const isForeign = ({ provenance: { access, marked } }: Holder): boolean =>
  access === 'restricted' || access === 'unknown' || marked === true
