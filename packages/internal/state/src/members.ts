import { join } from 'node:path'
import type { DiskBlobStore } from '@svc/cas'
import { loopBudget } from '@svc/internal-concurrency'
import { listFolder } from '@svc/internal-files'
import type { ModelIndex } from '@svc/manifest'
import { digestFromHex, type Sha256Digest } from '@svc/ref'
import { companionsUnder } from './artifact-record.ts'
import type { ArtifactState } from './artifacts.ts'
import { type Advise, LibraryError } from './library-error.ts'
import type { NewerCommits } from './newer-commits.ts'
import { type ShownOrigin, shownOrigin } from './origin.ts'
import { isPrivate, isRestricted, toldWithheld, verdictOf, type WithheldFact } from './provenance.ts'
import { stampOf } from './stamp.ts'
import type { StoreState } from './state.ts'
import { type OnUnreadable, UnreadableStateError } from './strict.ts'
import type { Usage } from './usage.ts'

export interface MembersDeps extends Pick<StoreState, 'documents' | 'artifacts'> {
  readonly store: Pick<DiskBlobStore, 'root' | 'blobPath'>
  readonly usage: Usage
  readonly newer: NewerCommits
  readonly advise: Advise
}

/** A quant under a name, with what is known of it here. */
export interface ListedQuant {
  readonly quant: string
  readonly manifest: Sha256Digest
  /** Of its files; 0 while the manifest is missing. */
  readonly sizeBytes: number
  readonly complete: boolean
  readonly private: boolean
  /** UTC, RFC 3339. */
  readonly importedAt?: string
  /** UTC, RFC 3339. */
  readonly lastUsedAt?: string
  /** Of files that are not here. */
  readonly missingBytes?: number
  /** Some of the missing files were found corrupt. */
  readonly damaged?: boolean
  /** At doors that no configuration opens. */
  readonly withheld?: { readonly fact: WithheldFact; readonly reason: string }
  /** Its repository needed access. */
  readonly restricted?: true
  /** The document that lists its companions. */
  readonly companions?: Sha256Digest
  /** Its weights that no runtime can load. */
  readonly malformed?: readonly string[]
  /** Evicted. */
  readonly away?: true
  /** Its owner wants its bytes to stay. */
  readonly pinned?: true
  readonly origin?: ShownOrigin
  /** The newer commit that was last found. */
  readonly newer?: string
}

type Recorded = ArtifactState | 'damaged' | undefined
type Files = readonly { readonly digest: Sha256Digest; readonly size: number }[]
const MAX_KNOWN = 100_000

/** The members of an index for people: size, presence and record of each. A manifest never changes, so it is read once. */
export class Members {
  readonly #deps: MembersDeps
  readonly #files = new Map<Sha256Digest, Files>()

  constructor(deps: MembersDeps) {
    this.#deps = deps
  }

  async quarantined(): Promise<ReadonlySet<Sha256Digest>> {
    const names = (await listFolder(join(this.#deps.store.root, 'quarantine'))).map(({ name }) => name)
    return new Set(names.filter((name) => /^[0-9a-f]{64}-/.test(name)).map((name) => digestFromHex(name.slice(0, 64))))
  }

  /** In the order of the index of `ns/name`, which is sorted by quant. */
  async of(
    name: string,
    { members }: Pick<ModelIndex, 'members'>,
    quarantined: ReadonlySet<Sha256Digest>,
    onUnreadable: OnUnreadable
  ): Promise<ListedQuant[]> {
    const listed: ListedQuant[] = []
    for (const { quant, manifest } of members) {
      if (loopBudget.isOver('lists')) await loopBudget.next('lists')
      const files = await this.#filesOf(manifest)
      const state = await this.#stateOf(manifest, onUnreadable)
      listed.push(this.#member(name, quant, manifest, files, state, quarantined))
    }
    return listed
  }

  #member(
    name: string,
    quant: string,
    manifest: Sha256Digest,
    files: Files | undefined,
    recorded: Recorded,
    quarantined: ReadonlySet<Sha256Digest>
  ): ListedQuant {
    const { usage, newer, store, advise } = this.#deps
    const isDamaged = recorded === 'damaged'
    const state = isDamaged ? undefined : recorded
    const lacking = (files ?? []).filter(({ digest, size }) => stampOf(store.blobPath(digest))?.size !== size)
    const missing = new Map(lacking.map(({ digest, size }) => [digest, size]))
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
      private: isDamaged || (state !== undefined && isPrivate(state)),
      ...(state?.importedAt !== undefined && { importedAt: state.importedAt }),
      ...(lastUsedAt !== undefined && { lastUsedAt }),
      ...(!complete && { missingBytes }),
      ...(damaged && { damaged }),
      ...withheldOf(recorded, advise),
      ...malformedOf(state),
      ...((isDamaged || (state !== undefined && isRestricted(state))) && { restricted: true }),
      ...besideOf(state, name),
      ...roomOf(state, complete),
      ...originOf(state, name, newer.of(`${name}:${quant}`, manifest))
    }
  }

  async #stateOf(manifest: Sha256Digest, onUnreadable: OnUnreadable): Promise<Recorded> {
    try {
      return await this.#deps.artifacts.read(manifest)
    } catch (error) {
      if (!(error instanceof UnreadableStateError)) throw error
      onUnreadable(error)
      return 'damaged'
    }
  }

  /** Undefined for a manifest that is not here. */
  async #filesOf(digest: Sha256Digest): Promise<Files | undefined> {
    const { store, documents } = this.#deps
    if (stampOf(store.blobPath(digest)) === undefined) return undefined
    const known = this.#files.get(digest)
    if (known !== undefined) return known
    try {
      const manifest = await documents.manifest(digest, { scan: true })
      const files = manifest?.files.map((file) => ({ digest: file.digest, size: file.size }))
      if (this.#files.size >= MAX_KNOWN) this.#files.clear()
      if (files !== undefined) this.#files.set(digest, files)
      return files
    } catch (error) {
      // the error is reported when the document itself is requested; the list continues
      if (!(error instanceof LibraryError)) throw error
      return undefined
    }
  }
}

/** Why it is withheld at doors that no configuration opens. */
function withheldOf(state: Recorded, advise: Advise): Pick<ListedQuant, 'withheld'> {
  const verdict = verdictOf(state, 'export')
  return verdict.given ? {} : { withheld: { fact: verdict.fact, reason: toldWithheld(verdict, advise) } }
}

const malformedOf = (state: ArtifactState | undefined): Pick<ListedQuant, 'malformed'> =>
  state?.provenance.malformed === undefined ? {} : { malformed: [...state.provenance.malformed] }

function besideOf(state: ArtifactState | undefined, name: string): Pick<ListedQuant, 'companions'> {
  const companions = companionsUnder(state, name)
  return companions === undefined ? {} : { companions }
}

const roomOf = (state: ArtifactState | undefined, complete: boolean): Pick<ListedQuant, 'pinned' | 'away'> => ({
  ...(state?.kept && { pinned: true }),
  ...(state?.away && !complete && { away: true })
})

function originOf(
  state: ArtifactState | undefined,
  name: string,
  newer: string | undefined
): Pick<ListedQuant, 'origin' | 'newer'> {
  if (state === undefined) return {}
  return { origin: shownOrigin(state.source, name), ...(newer !== undefined && { newer }) }
}
