import type { DiskBlobStore } from '@svc/cas'
import { type ArtifactSource, type Holdings, MAX_UNPROVEN, type Provenance, sourceKey } from '@svc/internal-state'
import type { Manifest } from '@svc/manifest'
import type { Sha256Digest } from '@svc/ref'
import type { SourceFile } from './source.ts'

interface NamedDigest extends Pick<SourceFile, 'name'> {
  readonly digest?: Sha256Digest | undefined
}

/**
 * Which bytes of an import its source was seen to give. A listing that names the digest of stored bytes proves nothing:
 * anyone who knows the digest of a private blob could request it that way (spec add.37).
 */
export class Proof {
  readonly #holdings: Holdings
  readonly #source: ArtifactSource
  readonly #key: string
  /** Files whose bytes came from another import. */
  readonly #taken = new Map<string, Sha256Digest>()
  readonly #arrived = new Set<Sha256Digest>()
  readonly #committed = new Set<Sha256Digest>()

  constructor(holdings: Holdings, source: ArtifactSource) {
    this.#holdings = holdings
    this.#source = source
    this.#key = sourceKey(source)
  }

  /** The store had the file. */
  took({ name, digest, stored }: NamedDigest & Pick<SourceFile, 'stored'>): void {
    if (digest === undefined || this.#arrived.has(digest)) return
    if (stored?.isSeen === true) this.#arrived.add(digest)
    else this.#taken.set(name, digest)
  }

  /**
   * Before bytes are fetched into the partial blob that has a file's digest as its key.
   * @returns whether it holds no bytes of other sources
   */
  async begin({ name, digest }: NamedDigest, { isEmpty }: { readonly isEmpty: boolean }): Promise<boolean> {
    if (digest === undefined) return true
    const { arrivals } = this.#holdings
    await arrivals.begin(digest, this.#key, { isEmpty })
    const isAlone = await arrivals.isAlone(digest, this.#key, { isBlob: false })
    if (isAlone) this.#arrived.add(digest)
    else this.took({ name, digest })
    return isAlone
  }

  /**
   * Before bytes of the blob `of` are copied into a file's partial blob, because the source says that they are the
   * same. The source does not give them: whoever knows the digest of something made from a private file could have
   * the rest assembled here, and fetch it. So if a listing of `of` itself would prove nothing, the file is unproven,
   * whatever else the source gives of it. This is noted before the first byte is copied, so that a later import does
   * not count all of it as given.
   */
  async reuse(
    { name, digest }: NamedDigest,
    of: Sha256Digest,
    source: { readonly isRestricted: boolean }
  ): Promise<void> {
    if (digest === undefined || (await this.#holdings.proven([of], this.#source, source)).has(of)) return
    await this.#holdings.arrivals.begin(digest, `blob:${of}`, { isEmpty: false })
    this.#arrived.delete(digest)
    this.#taken.set(name, digest)
  }

  /**
   * Before the owner's own bytes become a blob: an unfinished artifact that names them did not bring them, even if
   * this import fails.
   */
  async own(digest: Sha256Digest): Promise<void> {
    if (!(await this.#holdings.isAwaited(digest))) return
    await this.#holdings.arrivals.begin(digest, this.#key, { isEmpty: false })
    this.#arrived.add(digest)
  }

  /** The partial blob has become a blob. */
  async committed({ digest }: NamedDigest): Promise<void> {
    if (digest === undefined) return
    await this.#holdings.arrivals.committed(digest)
    this.#committed.add(digest)
  }

  /**
   * The provenance of each artifact, from what the source says of itself. @param entries digests of all files that
   * artifacts consist of @param weights of these, those for which bytes from local disks may inherit a provenance
   */
  async provenances(
    facts: Provenance,
    entries: ReadonlySet<Sha256Digest>,
    weights: readonly Sha256Digest[]
  ): Promise<(manifest: Pick<Manifest, 'files'>) => Provenance> {
    const unproven = await this.#unproven(this.#taken, facts)
    const inherited = facts.access === 'own' ? await this.#holdings.inherited(weights) : undefined
    return ({ files }) => {
      const digests = new Set(files.map(({ digest }) => digest))
      // members of tars are in no manifest: they count for all artifacts
      const names = unproven.filter(([, digest]) => digests.has(digest) || !entries.has(digest)).map(([name]) => name)
      const heritage = weights.map((digest) => (digests.has(digest) ? inherited?.get(digest) : undefined))
      return {
        ...facts,
        ...heritage.find((each) => each !== undefined),
        ...(names.length > 0 && { unproven: names.sort().slice(0, MAX_UNPROVEN) })
      }
    }
  }

  /**
   * {@link provenances} of one artifact while its files arrive: bytes that came from another import count as if this
   * one found them now. @param listed names of all entries, by the digests that the source gave @param files of the
   * artifact; default: all
   */
  async provenanceNow(
    facts: Provenance,
    listed: ReadonlyMap<Sha256Digest, string>,
    files: Manifest['files'] | undefined,
    store: Pick<DiskBlobStore, 'stat' | 'partialStatus'>
  ): Promise<Provenance> {
    if (facts.access !== 'public') return facts
    const digests = new Set(files?.map(({ digest }) => digest) ?? listed.keys())
    const own = [...listed].filter(([digest]) => digests.has(digest))
    const taken = new Map([...this.#taken].filter(([, digest]) => digests.has(digest) || !listed.has(digest)))
    for (const [digest, name] of own) {
      if (this.#arrived.has(digest)) continue
      const isBlob = (await store.stat(digest)) !== undefined
      const isBegun = !isBlob && (store.partialStatus(digest)?.writtenBytes ?? 0) > 0
      const isOthers = isBegun && !(await this.#holdings.arrivals.isAlone(digest, this.#key, { isBlob }))
      if (isBlob || isOthers) taken.set(name, digest)
    }
    const unproven = (await this.#unproven(taken, facts)).map(([name]) => name)
    return { ...facts, ...(unproven.length > 0 && { unproven: unproven.sort().slice(0, MAX_UNPROVEN) }) }
  }

  /** Whether this import has brought a blob, or its source would pass it on. */
  async hasGiven(digest: Sha256Digest): Promise<boolean> {
    return this.#committed.has(digest) || (await this.#holdings.proven([digest], this.#source)).has(digest)
  }

  async #unproven(taken: ReadonlyMap<string, Sha256Digest>, { access }: Provenance) {
    const isRestricted = access === 'restricted'
    const proven = await this.#holdings.proven([...taken.values()], this.#source, { isRestricted })
    return [...taken].filter(([, digest]) => !proven.has(digest))
  }

  /** Artifacts have the bytes now, and their records say where they came from. */
  settle(): Promise<void> {
    return this.#holdings.arrivals.settle(this.#arrived)
  }
}
