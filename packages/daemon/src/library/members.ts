import { join } from 'node:path'
import type { DiskBlobStore } from '@svc/cas'
import type { ModelMember } from '@svc/client/protocol'
import type { Clock } from '@svc/internal-clock'
import { loopBudget } from '@svc/internal-concurrency'
import { listFolder } from '@svc/internal-files'
import type { Manifest, ModelIndex } from '@svc/manifest'
import { digestFromHex, type Sha256Digest } from '@svc/ref'
import { DaemonError } from '../errors.ts'
import { companionsUnder } from './artifact-record.ts'
import type { ArtifactState, Artifacts } from './artifacts.ts'
import type { Documents } from './documents.ts'
import type { NewerCommits } from './newer-commits.ts'
import { shownOrigin } from './origin.ts'
import { newFolders, type Present } from './present.ts'
import { isPrivate, isRestricted, verdictOf } from './provenance.ts'
import { stampOf } from './stamp.ts'
import { type OnUnreadable, UnreadableStateError } from './strict.ts'
import type { Usage } from './usage.ts'

export interface MembersDeps {
  readonly clock: Clock
  readonly store: DiskBlobStore
  readonly documents: Documents
  readonly artifacts: Artifacts
  readonly usage: Usage
  readonly newer: NewerCommits
}

/** What belongs to one list of all models. */
export interface Scan {
  readonly present: Present
  readonly onUnreadable: OnUnreadable
}

type Recorded = ArtifactState | 'absent' | 'unreadable'
type Files = readonly { readonly digest: Sha256Digest; readonly size: number }[]
const MAX_KNOWN = 100_000

/**
 * The members of an index for people: size, what is present, and what is known of each. A manifest never changes, so it
 * is read once.
 */
export class Members {
  readonly #deps: MembersDeps
  readonly #files = new Map<Sha256Digest, Files>()
  /** What folders had when one list read them, for the next one. */
  readonly folders: ReturnType<typeof newFolders>

  constructor(deps: MembersDeps) {
    this.#deps = deps
    this.folders = newFolders(deps.clock)
  }

  /** The current corrupt blobs in quarantine. */
  async quarantined(): Promise<ReadonlySet<Sha256Digest>> {
    const names = (await listFolder(join(this.#deps.store.root, 'quarantine'))).map(({ name }) => name)
    return new Set(names.filter((name) => /^[0-9a-f]{64}-/.test(name)).map((name) => digestFromHex(name.slice(0, 64))))
  }

  /**
   * In the order of the index of `ns/name`, which is sorted by quant. A promise only where something has to be waited for: for a list
   * of thousands of indexes.
   */
  of(
    name: string,
    index: Pick<ModelIndex, 'members'>,
    quarantined: ReadonlySet<Sha256Digest>,
    scan: Scan
  ): ModelMember[] | Promise<ModelMember[]> {
    const listed: ModelMember[] = []
    for (const { quant, manifest } of index.members) {
      const files = this.#filesNow(manifest, scan.present)
      const state = this.#deps.artifacts.knownNow(manifest, scan.present)
      if (files === undefined || state === undefined || loopBudget.isOver('lists'))
        return this.#wait(name, index, quarantined, scan)
      listed.push(this.#member({ name, quant, manifest }, files, state, quarantined, scan.present))
    }
    return listed
  }

  async #wait(
    name: string,
    { members }: Pick<ModelIndex, 'members'>,
    quarantined: ReadonlySet<Sha256Digest>,
    scan: Scan
  ): Promise<ModelMember[]> {
    const listed: ModelMember[] = []
    for (const { quant, manifest } of members) {
      if (loopBudget.isOver('lists')) await loopBudget.next('lists')
      const files = (await this.#filesOf(manifest)) ?? 'absent'
      const state = await this.#stateOf(manifest, scan)
      listed.push(this.#member({ name, quant, manifest }, files, state, quarantined, scan.present))
    }
    return listed
  }

  #member(
    { name, quant, manifest }: { readonly name: string; readonly quant: string; readonly manifest: Sha256Digest },
    found: Files | 'absent',
    known: Recorded,
    quarantined: ReadonlySet<Sha256Digest>,
    present: Present
  ): ModelMember {
    const { usage, newer } = this.#deps
    const files = found === 'absent' ? undefined : found
    const state = typeof known === 'string' ? undefined : known
    const isUnreadable = known === 'unreadable'
    const missing = new Map(
      (files ?? []).filter((file) => this.#lacks(file, present)).map(({ digest, size }) => [digest, size])
    )
    const sizeBytes = (files ?? []).reduce((sum, { size }) => sum + size, 0)
    const missingBytes = [...missing.values()].reduce((sum, size) => sum + size, 0)
    const damaged = [...(files === undefined ? [manifest] : missing.keys())].some((digest) => quarantined.has(digest))
    const complete = files !== undefined && missingBytes === 0
    const lastUsedAt = usage.lastUsedAt(manifest)
    return {
      quant,
      manifest,
      sizeBytes,
      complete,
      // a record that cannot be read could say both
      private: isUnreadable || (state !== undefined && isPrivate(state)),
      ...(state?.importedAt !== undefined && { importedAt: state.importedAt }),
      ...(lastUsedAt !== undefined && { lastUsedAt }),
      ...(!complete && { missingBytes }),
      ...(damaged && { damaged }),
      ...withheldOf(isUnreadable ? 'damaged' : state),
      ...((isUnreadable || (state !== undefined && isRestricted(state))) && { restricted: true }),
      ...besideOf(state, name),
      ...roomOf(state, complete),
      ...originOf(state, name, newer.of(`${name}:${quant}`, manifest))
    }
  }

  #lacks({ digest, size }: Files[number], present: Present): boolean {
    if (present.lacksBlob(digest)) return true
    const stamp = stampOf(this.#deps.store.blobPath(digest))
    if (stamp === undefined) present.missedBlob(digest)
    return stamp?.size !== size
  }

  async #stateOf(manifest: Sha256Digest, { onUnreadable }: Scan): Promise<Recorded> {
    try {
      return (await this.#deps.artifacts.known(manifest)) ?? 'absent'
    } catch (error) {
      if (!(error instanceof UnreadableStateError)) throw error
      onUnreadable(error)
      return 'unreadable'
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
    return manifest && this.#keep(digest, manifest)
  }

  /** {@link #filesOf} at once; undefined where that has to be asked. */
  #filesNow(digest: Sha256Digest, present: Present): Files | 'absent' | undefined {
    const { store, documents } = this.#deps
    if (present.lacksBlob(digest)) return 'absent'
    if (stampOf(store.blobPath(digest)) === undefined) {
      present.missedBlob(digest)
      return 'absent'
    }
    const known = this.#files.get(digest)
    if (known !== undefined) return known
    const manifest = documents.manifestNow(digest)
    return manifest && this.#keep(digest, manifest)
  }

  #keep(digest: Sha256Digest, manifest: Manifest): Files {
    const files = manifest.files.map((file) => ({ digest: file.digest, size: file.size }))
    if (this.#files.size >= MAX_KNOWN) this.#files.clear()
    this.#files.set(digest, files)
    return files
  }
}

/** Why it is not passed on, as doors ask that no configuration opens further. */
function withheldOf(state: ArtifactState | 'damaged' | undefined): Pick<ModelMember, 'withheld'> {
  const verdict = verdictOf(state, 'export')
  return verdict.given ? {} : { withheld: { fact: verdict.fact, reason: verdict.reason } }
}

function besideOf(state: ArtifactState | undefined, name: string): Pick<ModelMember, 'companions'> {
  const companions = companionsUnder(state, name)
  return companions === undefined ? {} : { companions }
}

const roomOf = (state: ArtifactState | undefined, complete: boolean): Pick<ModelMember, 'pinned' | 'away'> => ({
  ...(state?.kept && { pinned: true }),
  ...(state?.away && !complete && { away: true })
})

function originOf(
  state: ArtifactState | undefined,
  name: string,
  newer: string | undefined
): Pick<ModelMember, 'origin' | 'newer'> {
  if (state === undefined) return {}
  return { origin: shownOrigin(state.source, name), ...(newer !== undefined && { newer }) }
}
