import type { Manifest, ModelIndex } from '@svc/manifest'
import {
  formatRef,
  type ModelRef,
  parseRef,
  RefError,
  type RepoId,
  type Sha256Digest,
  selectIndex,
  selectMember
} from '@svc/ref'
import type { Documents } from './documents.ts'
import { LibraryError } from './library-error.ts'
import type { RepoState, Repos } from './repos.ts'

/** What a reference names. */
export interface Resolved extends RepoId {
  /** Canonical, the selector as typed. */
  readonly ref: string
  /** The member that was selected; absent for a reference by digest. */
  readonly quant?: string
  readonly manifestDigest: Sha256Digest
  readonly indexDigest?: Sha256Digest
}

/** A result, with the objects that it was derived from. */
interface CachedResult {
  readonly repo: RepoId
  readonly state: RepoState
  readonly digest: Sha256Digest
  readonly index: ModelIndex
  readonly result: Resolved
}

/** References have at most 512 bytes, so this is a few megabytes. */
const MAX_ANSWERS = 4_096

/** Resolves names to digests, from local state alone (spec ref.16 to ref.20, route.1). */
export class Resolver {
  readonly #repos: Repos
  readonly #documents: Documents
  /**
   * By the reference as given. A result is valid while state and index are the same objects that it was derived from.
   */
  readonly #answers = new Map<string, CachedResult>()

  constructor(repos: Repos, documents: Documents) {
    this.#repos = repos
    this.#documents = documents
  }

  /**
   * Parses the reference, reads the repository's state, selects a snapshot, reads its index, and selects a member.
   * @throws RefError `E_PARSE`, `E_LENGTH`, `E_UNKNOWN_REF`, `E_AMBIGUOUS_SELECTOR`, `E_NO_MEMBER`, `E_PIN_MISMATCH`
   * @throws LibraryError `E_UNKNOWN_REF`, `E_NO_INDEX`, `E_INVALID_INDEX`
   */
  async resolve(text: string): Promise<Resolved> {
    const known = this.#known(text)
    if (known !== undefined) return known
    const ref = await this.#parse(text)
    if (ref.quant === undefined) return direct(ref, ref.digest)
    const { ns, name } = ref
    const state = await this.#repos.read(ns, name)
    const isUnknown = state === undefined || (state.index === undefined && ref.tag === undefined)
    if (isUnknown) throw await this.#unknownRepo(ref)
    const digest = selectIndex({ current: state.index, tags: state.tags }, ref)
    const index = await this.#documents.index(digest)
    const result = selected(ref, digest, index)
    if (this.#answers.size >= MAX_ANSWERS) this.#answers.clear()
    this.#answers.set(text, { repo: { ns, name }, state, digest, index, result })
    return result
  }

  /** {@link resolve} of an artifact whose manifest is here. @throws as that; LibraryError `E_NOT_FOUND` */
  async resolveHere(text: string): Promise<Resolved & { readonly manifest: Manifest }> {
    const resolved = await this.resolve(text)
    return { ...resolved, manifest: await this.#documents.requireManifest(resolved.manifestDigest) }
  }

  /** An earlier result, if the state and the index that it was derived from have not changed on disk. */
  #known(text: string): Resolved | undefined {
    const answer = this.#answers.get(text)
    if (answer === undefined) return undefined
    const { repo, state, digest, index, result } = answer
    if (this.#repos.cached(repo.ns, repo.name) === state && this.#documents.cachedIndex(digest) === index) return result
    this.#answers.delete(text)
    return undefined
  }

  async #parse(text: string): Promise<ModelRef> {
    try {
      return parseRef(text)
    } catch (error) {
      if (!(error instanceof RefError) || error.repo === undefined) throw error
      // grammar errors name the quants of a known repository (spec ref.13)
      const candidates = await this.#quants(error.repo)
      if (candidates.length === 0) throw error
      throw new LibraryError(error.code, error.message, { candidates, cause: error })
    }
  }

  async #quants({ ns, name }: RepoId): Promise<string[]> {
    try {
      const index = (await this.#repos.read(ns, name))?.index
      return index === undefined ? [] : (await this.#documents.index(index)).members.map(({ quant }) => quant)
    } catch {
      // this only improves another error; problems of this repository show when it is requested
      return []
    }
  }

  async #unknownRepo({ ns, name }: RepoId): Promise<LibraryError> {
    const siblings = (await this.#repos.names(ns)).slice(0, 100).map((each) => `${ns}/${each}`)
    const known = siblings.length === 0 ? '' : `; known in ${ns}: ${siblings.slice(0, 10).join(', ')}`
    return new LibraryError(
      'E_UNKNOWN_REF',
      `there is no ${ns}/${name} here, and network fetch is not implemented for names: import it first${known}`,
      { candidates: siblings }
    )
  }
}

const direct = (ref: ModelRef, manifestDigest: Sha256Digest): Resolved => ({
  ref: formatRef(ref),
  ns: ref.ns,
  name: ref.name,
  manifestDigest
})

function selected(ref: Extract<ModelRef, { quant: string }>, indexDigest: Sha256Digest, index: ModelIndex): Resolved {
  const member = selectMember(index.members, ref)
  return {
    ref: formatRef(ref),
    ns: ref.ns,
    name: ref.name,
    quant: member.quant,
    manifestDigest: member.manifest,
    indexDigest
  }
}
