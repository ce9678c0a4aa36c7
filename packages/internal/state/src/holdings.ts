import type { ManifestFile } from '@svc/manifest'
import { type Sha256Digest, tryParseDigest } from '@svc/ref'
import type { Arrivals } from './arrivals.ts'
import type { ArtifactState } from './artifacts.ts'
import { BlobIndex, manifestIn } from './blob-index.ts'
import type { ArtifactSource } from './origin.ts'
import { isPrivate, MAX_UNPROVEN, type Provenance, verdictOf } from './provenance.ts'
import { Revised } from './revised.ts'
import { stampOf } from './stamp.ts'
import type { StoreState } from './state.ts'

export interface HoldingsDeps extends Pick<StoreState, 'store' | 'artifacts' | 'documents'> {
  readonly arrivals: Arrivals
}

/** Identifies a source, so that bytes it once gave count as its own again. */
export const sourceKey = ({ kind, repo, revision }: ArtifactSource): string =>
  `${kind}:${repo?.toLowerCase() ?? revision ?? ''}`

const PIN = 'bt:'
/** {@link sourceKey} of the swarm of a pinned artifact. */
export const pinKey = (manifestDigest: Sha256Digest): string => PIN + manifestDigest

/** Of a pinned artifact, at one moment. */
interface PinnedFiles {
  readonly unproven: readonly string[]
  readonly absent: readonly ManifestFile[]
}

type HoldingArtifact = Pick<ArtifactState, 'manifestDigest' | 'source' | 'provenance' | 'incomplete'>

/** Which artifacts have the stored blobs, and what that means for another source that names them (spec add.37). */
export class Holdings {
  readonly arrivals: Arrivals
  readonly #deps: HoldingsDeps
  readonly #index: BlobIndex
  readonly #asked = new Revised<Map<Sha256Digest, Promise<PinnedFiles>>>()

  constructor(deps: HoldingsDeps) {
    this.#deps = deps
    this.#index = new BlobIndex(deps)
    this.arrivals = deps.arrivals
  }

  /**
   * Which of the blobs a source may pass on although it did not give them just now: an artifact that everybody may have
   * has them, the same source gave them before at the same commit, or an import from it that was not finished. For a
   * source that is restricted now only the last two count: what others give may be taken back, and it may open.
   */
  async proven(
    digests: readonly Sha256Digest[],
    source: ArtifactSource,
    { isRestricted = false }: { readonly isRestricted?: boolean } = {}
  ): Promise<ReadonlySet<Sha256Digest>> {
    const key = sourceKey(source)
    return this.#provenAmong(
      digests,
      (state) => (!isRestricted && isGiven(state)) || gaveItself(state, source),
      (digest) => this.arrivals.isAlone(digest, key, { isBlob: true })
    )
  }

  /**
   * Names of a pinned artifact's files that are here, whatever it calls them, although nobody saw its swarm give them:
   * no artifact that everybody may have has them, and no swarm of such an artifact, or its own, brought them alone. At
   * most {@link MAX_UNPROVEN}.
   */
  async unprovenOf(manifestDigest: Sha256Digest): Promise<readonly string[]> {
    return (await this.#pinnedFiles(manifestDigest)).unproven
  }

  async #pinnedFiles(manifestDigest: Sha256Digest): Promise<PinnedFiles> {
    const { files = [] } = (await this.#deps.documents.manifest(manifestDigest)) ?? {}
    const [here, absent]: [ManifestFile[], ManifestFile[]] = [[], []]
    // nobody needs to give the bytes of an empty file
    for (const file of files) if (file.size > 0) (this.#isHere(file) ? here : absent).push(file)
    const proven = await this.#provenAmong(
      here.map(({ digest }) => digest),
      isGiven,
      (digest) => this.#cameFromSwarms(digest, manifestDigest)
    )
    const unproven = here.filter(({ digest }) => !proven.has(digest)).map(({ name }) => name)
    return { unproven: unproven.slice(0, MAX_UNPROVEN), absent }
  }

  /** As a blob, or in part. */
  #isHere({ digest }: Pick<ManifestFile, 'digest'>): boolean {
    const { store } = this.#deps
    return Boolean(store.partialStatus(digest)?.writtenBytes) || stampOf(store.blobPath(digest)) !== undefined
  }

  /** The swarm of this pinned artifact brought all of a blob, or partial, with those of others that everybody may have. */
  async #cameFromSwarms(digest: Sha256Digest, manifestDigest: Sha256Digest): Promise<boolean> {
    const { store, artifacts } = this.#deps
    const isBlob = stampOf(store.blobPath(digest)) !== undefined
    for (const source of await this.arrivals.sources(digest, { isBlob })) {
      if (source === pinKey(manifestDigest)) continue
      const other = source.startsWith(PIN) ? tryParseDigest(source.slice(PIN.length)) : undefined
      const state = other && (await artifacts.ifReadable(other))
      if (state === undefined || !isGiven(state)) return false
    }
    return true
  }

  /** Whether an incomplete artifact names the blob. */
  async isAwaited(digest: Sha256Digest): Promise<boolean> {
    for (const manifestDigest of (await this.#index.upToDate()).get(digest) ?? []) {
      if ((await this.#deps.artifacts.ifReadable(manifestDigest))?.incomplete === true) return true
    }
    return false
  }

  /**
   * {@link unprovenOf}, for a door that asks at each request: remembered until an artifact, an arrival, or what is here of
   * the files changes.
   */
  async unprovenNow(manifestDigest: Sha256Digest): Promise<readonly string[]> {
    const revision = this.#deps.artifacts.changes + this.arrivals.changes
    const byManifest = await this.#asked.at(revision, async () => new Map())
    const known = await byManifest.get(manifestDigest)
    if (known !== undefined && !known.absent.some((file) => this.#isHere(file))) return known.unproven
    const asked = this.#pinnedFiles(manifestDigest)
    byManifest.set(manifestDigest, asked)
    asked.catch(() => byManifest.delete(manifestDigest))
    return (await asked).unproven
  }

  /** The provenance that files from the owner's disk inherit, by blob: only sources that are not public brought these here. */
  async inherited(digests: readonly Sha256Digest[]): Promise<ReadonlyMap<Sha256Digest, Provenance>> {
    const inherited = new Map<Sha256Digest, Provenance>()
    for (const digest of new Set(digests)) {
      let first: HoldingArtifact | undefined
      let isOthers = false
      for await (const state of this.#holders(digest)) {
        first ??= state
        isOthers = !isForeign(state)
        if (isOthers) break
      }
      if (first === undefined || isOthers) continue
      const { decision: _, ...facts } = first.provenance
      inherited.set(digest, facts)
    }
    return inherited
  }

  /** The blobs that a holder vouches for; `withoutHolders` decides about those that have none. */
  async #provenAmong(
    digests: readonly Sha256Digest[],
    vouches: (state: HoldingArtifact) => boolean,
    withoutHolders: (digest: Sha256Digest) => Promise<boolean>
  ): Promise<ReadonlySet<Sha256Digest>> {
    const proven = new Set<Sha256Digest>()
    for (const digest of new Set(digests)) {
      let isHeld = false
      let isProven = false
      for await (const state of this.#holders(digest)) {
        isHeld = true
        isProven = vouches(state)
        if (isProven) break
      }
      if (isHeld ? isProven : await withoutHolders(digest)) proven.add(digest)
    }
    return proven
  }

  /**
   * Complete artifacts only: the bytes of an incomplete one may be here through another. An artifact with an unreadable
   * record counts, with unknown access.
   */
  async *#holders(digest: Sha256Digest): AsyncGenerator<HoldingArtifact> {
    const { artifacts, documents } = this.#deps
    for (const manifestDigest of (await this.#index.upToDate()).get(digest) ?? []) {
      const standing = await artifacts.standing(manifestDigest)
      if (standing === undefined || (standing !== 'damaged' && standing.incomplete === true)) continue
      // its files are unknown: it vouches for nothing
      if ((await manifestIn(documents, manifestDigest)) === undefined) continue
      yield standing === 'damaged' ? ofDamaged(manifestDigest) : standing
    }
  }
}

const isGiven = (state: HoldingArtifact): boolean => verdictOf(state, 'export').given

const ofDamaged = (manifestDigest: Sha256Digest): HoldingArtifact => ({
  manifestDigest,
  source: { kind: 'local' },
  provenance: { access: 'unknown' }
})

/**
 * The same commit of the same repository gave the artifact's bytes before, perhaps when it was not public. The
 * repository's name alone proves nothing: another commit, or the name's new owner, can list digests of bytes that it
 * never had. Neither does a private artifact: its bytes may have come by a way that has gone since.
 */
const gaveItself = ({ source, provenance }: HoldingArtifact, now: ArtifactSource): boolean =>
  source.repo !== undefined &&
  source.revision !== undefined &&
  source.revision === now.revision &&
  sourceKey(source) === sourceKey(now) &&
  provenance.unproven === undefined &&
  !isPrivate({ provenance })

/** Its source does not serve everyone. */
const isForeign = ({ provenance: { access, marked } }: HoldingArtifact): boolean =>
  access === 'restricted' || access === 'unknown' || marked === true
