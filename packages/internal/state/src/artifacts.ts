import { join, sep } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { type Clock, systemClock, timestampOf } from '@svc/internal-clock'
import { Gate, loopBudget } from '@svc/internal-concurrency'
import type { Sha256Digest } from '@svc/ref'
import { type ArtifactImport, afterImport, OF_DAMAGED } from './artifact-import.ts'
import { ARTIFACT_RECORD, type ArtifactState, type ProvenCopy, type RecordedState } from './artifact-record.ts'
import type { ChangesElsewhere } from './changes-elsewhere.ts'
import { NO_HINTS } from './origin.ts'
import { decided, mergedProvenance, type Provenance, sameStanding } from './provenance.ts'
import { recordName, StateRecords } from './record.ts'
import type { ReplacedFiles } from './replace.ts'
import { Revised } from './revised.ts'
import { type FileStamp, StampedReads, stampOf } from './stamp.ts'
import { type OnUnreadable, readable } from './strict.ts'

export type { ArtifactImport } from './artifact-import.ts'
export type { ArtifactState } from './artifact-record.ts'

type FutureNames = ReadonlyMap<string, readonly Sha256Digest[]>

/** Of one artifact. */
const MAX_COPIES = 8

/** Companions that come after their artifact. */
interface AddedCompanions {
  /** Of their document. */
  readonly digest: Sha256Digest
  /** What their source said of who may have them. */
  readonly facts: Provenance
  /** They came from where the artifact did. Default false. */
  readonly isOfSource?: boolean
}

/**
 * What is known of each artifact: `state/artifacts/<hex of the manifest digest>.json`. First how it is read; then what
 * imports, the owner, sources and peers, companions and names change in it; last how a change is written, one at a time.
 */
export class Artifacts {
  readonly #root: string
  readonly #clock: Clock
  readonly #records: StateRecords<RecordedState>
  readonly #changing = new Gate(1)
  readonly #known = new StampedReads<ArtifactState>()
  readonly #listeners: ((manifestDigest: Sha256Digest) => void)[] = []
  #changes = 0
  #shownChanges = 0
  readonly #futureNames = new Revised<FutureNames>()

  readonly #elsewhere: Pick<ChangesElsewhere, 'revision'> | undefined
  #stamps: ReadonlyMap<Sha256Digest, FileStamp | undefined> | undefined

  /** @param elsewhere the changes of another process, which owns the store; it is this one by default */
  constructor(
    root: string,
    files: ReplacedFiles,
    clock: Clock = systemClock,
    elsewhere?: Pick<ChangesElsewhere, 'revision'>
  ) {
    this.#elsewhere = elsewhere
    this.#clock = clock
    this.#root = join(root, 'state', 'artifacts')
    this.#records = new StateRecords(root, files, ARTIFACT_RECORD, clock)
  }

  /**
   * For work that builds on the record, and stops where it cannot be read. Cached, and validated with one `stat`.
   * @returns undefined for an unknown artifact. @throws UnreadableStateError
   */
  read(manifestDigest: Sha256Digest): Promise<ArtifactState | undefined> {
    return this.#known.read(this.#path(manifestDigest), () => this.#readFile(manifestDigest))
  }

  /** For verdicts, and for what is merged with a record: `damaged` for one that cannot be read, as in {@link read}. */
  async standing(manifestDigest: Sha256Digest): Promise<ArtifactState | 'damaged' | undefined> {
    let isDamaged = false
    const state = await readable(
      () => this.read(manifestDigest),
      () => {
        isDamaged = true
      }
    )
    return isDamaged ? 'damaged' : state
  }

  /** For what only adds to an answer: a record that cannot be read counts as none. Nobody may get more by its absence. */
  async ifReadable(manifestDigest: Sha256Digest): Promise<ArtifactState | undefined> {
    const standing = await this.standing(manifestDigest)
    return standing === 'damaged' ? undefined : standing
  }

  async #readFile(manifestDigest: Sha256Digest): Promise<ArtifactState | undefined> {
    const state = await this.#records.read(recordName(manifestDigest))
    return state && { manifestDigest, ...state }
  }

  /**
   * All artifacts, sorted by digest. Records that cannot be read are passed to `onUnreadable`, or else thrown. With
   * `cached`, only those that changed are read again, as in {@link read}.
   */
  async *list(
    onUnreadable?: OnUnreadable,
    { cached = false }: { readonly cached?: boolean } = {}
  ): AsyncGenerator<ArtifactState> {
    for (const digest of await this.digests()) {
      if (loopBudget.isOver('lists')) await loopBudget.next('lists')
      const state = await readable(() => (cached ? this.read(digest) : this.#readFile(digest)), onUnreadable)
      if (state !== undefined) yield state
    }
  }

  /** Those of all artifacts that have a record, sorted. */
  digests(): Promise<readonly Sha256Digest[]> {
    return this.#records.digests()
  }

  /** Increases before and after every change of an artifact. */
  get changes(): number {
    return this.#changes + (this.#elsewhere?.revision ?? 0)
  }

  /** Increases with every change of whether artifacts are here, complete, or given to others, and of their companions. */
  get shownChanges(): number {
    return this.#shownChanges + (this.#elsewhere?.revision ?? 0)
  }

  /** Calls `listener` after each change of an artifact that is known then. */
  listen(listener: (manifestDigest: Sha256Digest) => void): void {
    this.#listeners.push(listener)
  }

  /** Tells the listeners which records another process has changed since the last call; the first one only looks. */
  async lookElsewhere(): Promise<void> {
    const before = this.#stamps
    const digests = await this.digests()
    this.#stamps = new Map(digests.map((digest) => [digest, stampOf(this.#path(digest))]))
    if (before === undefined) return
    const changed = new Set([...this.#stamps.keys(), ...before.keys()])
    for (const digest of changed)
      if (!isDeepStrictEqual(before.get(digest), this.#stamps.get(digest)))
        for (const listener of this.#listeners) listener(digest)
  }

  /**
   * Records what an import says of an artifact, with what was known before. A damaged record could have said that it is
   * private: it is so until the owner says otherwise (spec disk.19).
   */
  record(state: ArtifactImport): Promise<void> {
    return this.#inTurn(async () => {
      const standing = await this.standing(state.manifestDigest)
      const before = standing === 'damaged' ? undefined : standing
      await this.#write(afterImport(standing, state, timestampOf(this.#clock)), before)
    })
  }

  /** Records the owner's decision, private or shared; an unknown artifact is created. @throws CorruptStateError */
  setPrivate(manifestDigest: Sha256Digest, value: boolean): Promise<ArtifactState> {
    const decision = decided(value ? 'private' : 'shared', this.#clock)
    return this.#amend(manifestDigest, (before) => ({ ...before, provenance: { ...before.provenance, decision } }))
  }

  /** Records whether its owner wants the bytes to stay. @throws CorruptStateError */
  setKept(manifestDigest: Sha256Digest, value: boolean): Promise<ArtifactState> {
    return this.#amend(manifestDigest, ({ kept: _, ...before }) => ({ ...before, ...(value && { kept: true }) }))
  }

  /** Releases a pinned import. @returns false if it was not one */
  releasePin(manifestDigest: Sha256Digest): Promise<boolean> {
    return this.#change(manifestDigest, (before) => (before.pinned ? { ...before, pinned: false } : undefined))
  }

  /** The hub confirmed without a credential that it is public. */
  confirmPublic(manifestDigest: Sha256Digest): Promise<boolean> {
    return this.#change(manifestDigest, (before) => {
      if (before.provenance.access !== 'unknown') return undefined
      const confirmedPublicAt = timestampOf(this.#clock)
      return { ...before, provenance: { ...before.provenance, access: 'public', confirmedPublicAt } }
    })
  }

  /** Its missing blobs come with the key of a webseed. */
  usedKey(manifestDigest: Sha256Digest): Promise<boolean> {
    return this.#whileIncomplete(manifestDigest, { access: 'restricted', by: 'webseed-key' })
  }

  /** Bytes of an incomplete artifact came from another import. */
  tookUnproven(manifestDigest: Sha256Digest, unproven: readonly string[]): Promise<boolean> {
    return this.#whileIncomplete(manifestDigest, { access: 'public', unproven })
  }

  #whileIncomplete(manifestDigest: Sha256Digest, now: Provenance): Promise<boolean> {
    return this.#change(manifestDigest, (before) => {
      if (before.incomplete !== true) return undefined
      const provenance = mergedProvenance(before.provenance, now, { isPinned: true, wasComplete: false })
      return { ...before, provenance }
    })
  }

  /** Every blob of the artifact is in the store: from now on a missing one is damage. */
  complete(manifestDigest: Sha256Digest): Promise<boolean> {
    return this.#change(manifestDigest, ({ incomplete, away, ...rest }) =>
      incomplete === true || away === true ? rest : undefined
    )
  }

  /** Its weights are back, whoever brought them; one that was never {@link complete} is not so now. */
  endAway(manifestDigest: Sha256Digest): Promise<boolean> {
    return this.#change(manifestDigest, ({ away, ...rest }) => (away === true ? rest : undefined))
  }

  /** Lets its weights go, until it is {@link complete} again. @returns false where its owner wants them to stay */
  async setAway(manifestDigest: Sha256Digest): Promise<boolean> {
    const { away } = await this.#amend(manifestDigest, (before) => (before.kept ? before : { ...before, away: true }))
    return away === true
  }

  /** Records that a place has the weights, or no longer has them if `at` is undefined. */
  setCopy(
    manifestDigest: Sha256Digest,
    { kind, where, at }: Omit<ProvenCopy, 'at'> & { readonly at: string | undefined }
  ): Promise<ArtifactState> {
    return this.#amend(manifestDigest, ({ copies = [], ...before }) => {
      const others = copies.filter((copy) => copy.kind !== kind || copy.where !== where)
      const next = [...(at === undefined ? [] : [{ kind, where, at }]), ...others].slice(0, MAX_COPIES)
      return { ...before, ...(next.length > 0 && { copies: next }) }
    })
  }

  /**
   * Records the companions of the artifact under a name `ns/name`. Their provenance withholds the artifact, or changes
   * nothing. @throws CorruptStateError
   */
  addCompanions(
    manifestDigest: Sha256Digest,
    name: string,
    { digest, facts, isOfSource = false }: AddedCompanions
  ): Promise<ArtifactState> {
    return this.#amend(manifestDigest, ({ futureCompanions, ...before }) => ({
      ...before,
      provenance: mergedProvenance(before.provenance, facts, { isPinned: true, wasComplete: false }),
      ...(isOfSource && { source: { ...before.source, companions: digest } }),
      ...(futureCompanions !== undefined && futureCompanions.digest !== digest && { futureCompanions }),
      companions: { ...before.companions, [name]: digest }
    }))
  }

  /** What imports recorded under a name `ns/name` holds under another one, too. */
  nameAgain(manifestDigest: Sha256Digest, from: string, to: string): Promise<boolean> {
    const also = <T>(of: Readonly<Record<string, T>> | undefined): Readonly<Record<string, T>> | undefined =>
      of !== undefined && Object.hasOwn(of, from) ? { ...of, [to]: of[from]! } : of
    return this.#change(manifestDigest, ({ companions, choices, source: { followed, ...source }, ...before }) => {
      const next = { companions: also(companions), choices: also(choices), followed: also(followed) }
      return {
        ...before,
        ...(next.companions !== undefined && { companions: next.companions }),
        ...(next.choices !== undefined && { choices: next.choices }),
        source: { ...source, ...(next.followed !== undefined && { followed: next.followed }) }
      }
    })
  }

  /** A name that the artifact lost takes its companions with it, unless another name has the same. */
  dropCompanions(manifestDigest: Sha256Digest, name: string): Promise<void> {
    return this.#inTurn(async () => {
      const before = await this.ifReadable(manifestDigest)
      if (before === undefined) return
      const { [name]: dropped, ...companions } = before.companions ?? {}
      if (dropped === undefined) return
      const { companions: ofSource, ...source } = before.source
      const isKept = ofSource !== undefined && (ofSource !== dropped || Object.values(companions).includes(dropped))
      await this.#write({ ...before, companions, source: isKept ? before.source : source }, before)
    })
  }

  /** Companions that a pinned import was to bring under a name `ns/name` are no longer wanted. */
  endFutureCompanions(manifestDigest: Sha256Digest, name: string): Promise<boolean> {
    return this.#change(manifestDigest, ({ futureCompanions, ...rest }) =>
      futureCompanions?.name === name ? rest : undefined
    )
  }

  /** Ends a pending name that the artifact has now, or no longer gets; another one stays. */
  endFutureName(manifestDigest: Sha256Digest, name: string): Promise<boolean> {
    return this.#change(manifestDigest, ({ futureName, ...rest }) => (futureName === name ? rest : undefined))
  }

  /** The artifacts that will get the name `ns/name`. */
  async toBeNamed(name: string): Promise<readonly Sha256Digest[]> {
    return (await this.#toBeNamed()).get(name) ?? []
  }

  /** The names that {@link toBeNamed} has something for. */
  async futureNames(): Promise<readonly string[]> {
    return [...(await this.#toBeNamed()).keys()]
  }

  /** Read at the first request after a change. */
  #toBeNamed(): Promise<FutureNames> {
    return this.#futureNames.at(this.#changes, () => this.#readFutureNames())
  }

  async #readFutureNames(): Promise<FutureNames> {
    const names = new Map<string, Sha256Digest[]>()
    for await (const { futureName, manifestDigest } of this.list(() => undefined, { cached: true }))
      if (futureName !== undefined) names.set(futureName, [...(names.get(futureName) ?? []), manifestDigest])
    return names
  }

  /** Forgets an artifact, durably, if `may` agrees at that moment; an unknown one is not an error. */
  forget(manifestDigest: Sha256Digest, may: () => boolean = () => true): Promise<void> {
    return this.#inTurn(async () => {
      if (!may()) return
      this.#known.drop(this.#path(manifestDigest))
      this.#changes++
      try {
        await this.#records.remove(recordName(manifestDigest))
      } finally {
        this.#changes++
        this.#shownChanges++
      }
    })
  }

  /** Changes the record of an artifact; without a record, it gets one with unknown access. */
  #amend(manifestDigest: Sha256Digest, change: (before: ArtifactState) => ArtifactState): Promise<ArtifactState> {
    return this.#inTurn(async () => {
      const standing = await this.standing(manifestDigest)
      const known = standing === 'damaged' ? undefined : standing
      const next = change(
        known ?? {
          manifestDigest,
          source: { kind: 'local' },
          provenance: standing === 'damaged' ? OF_DAMAGED : { access: 'unknown' },
          pinned: false,
          hints: NO_HINTS
        }
      )
      await this.#write(next, known)
      return next
    })
  }

  /** Changes a known artifact, unless `change` leaves it as it is (undefined). @returns whether it was changed */
  #change(
    manifestDigest: Sha256Digest,
    change: (before: ArtifactState) => ArtifactState | undefined
  ): Promise<boolean> {
    return this.#inTurn(async () => {
      const before = await this.#readFile(manifestDigest)
      const next = before && change(before)
      if (next !== undefined) await this.#write(next, before)
      return next !== undefined
    })
  }

  /** One change at a time: two imports of the same artifact must not lose each other's hints. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    return this.#changing.run(undefined, work)
  }

  async #write(state: ArtifactState, before: ArtifactState | undefined): Promise<void> {
    const { manifestDigest } = state
    this.#known.drop(this.#path(manifestDigest))
    this.#changes++
    try {
      await this.#records.write(recordName(manifestDigest), state)
    } finally {
      this.#changes++
      if (before === undefined || isShownOtherwise(state, before)) this.#shownChanges++
      for (const listener of this.#listeners) listener(manifestDigest)
    }
  }

  #path(manifestDigest: Sha256Digest): string {
    return `${this.#root}${sep}${recordName(manifestDigest)}`
  }
}

const isShownOtherwise = (a: ArtifactState, b: ArtifactState): boolean =>
  a.incomplete !== b.incomplete || a.away !== b.away || !sameStanding(a, b) || besideOf(a) !== besideOf(b)

/** A rule that requires a signature is checked again for other companions. */
const besideOf = ({ companions = {}, source }: ArtifactState): string =>
  JSON.stringify([source.companions, Object.entries(companions).sort()])
