import type { ModelIndex } from '@svc/manifest'
import type { RepoId, Sha256Digest } from '@svc/ref'
import { LibraryError } from './library-error.ts'
import type { ListedQuant, Members } from './members.ts'
import { stampOf } from './stamp.ts'
import type { StoreState } from './state.ts'
import type { OnUnreadable } from './strict.ts'
import { type ListedTag, tagEntries } from './tags.ts'

export interface ListingDeps extends Pick<StoreState, 'repos' | 'documents' | 'store'> {
  readonly members: Members
}

/** A name of the store, and the quants of its current index. */
export interface ListedName {
  readonly ns: string
  readonly name: string
  readonly indexDigest: Sha256Digest
  readonly indexPresent: boolean
  /** Of the current index, if it is present and valid. */
  readonly quants: readonly string[]
  /** In the order of `quants`. */
  readonly members: readonly ListedQuant[]
}

/**
 * All names, or those after one, with their tags, sorted by name; `model` is undefined where only tags are left. Records that cannot be read are passed to
 * `onUnreadable`. @throws the system's error when the state cannot be read
 */
export async function* listNamed(
  deps: ListingDeps,
  onUnreadable: OnUnreadable,
  after?: RepoId
): AsyncGenerator<{ readonly model: ListedName | undefined; readonly tags: readonly ListedTag[] }> {
  const { repos, members, store } = deps
  const quarantined = await members.quarantined()
  for await (const { ns, name, state } of repos.list(onUnreadable, after)) {
    const repo = `${ns}/${name}`
    const tags = tagEntries(repo, state, store)
    if (state.index === undefined) {
      yield { model: undefined, tags }
      continue
    }
    const { indexPresent, index } = await indexOf(state.index, deps)
    const listed = await members.of(repo, index, quarantined, onUnreadable)
    const quants = index.members.map(({ quant }) => quant)
    yield { model: { ns, name, indexDigest: state.index, indexPresent, quants, members: listed }, tags }
  }
}

async function indexOf(
  digest: Sha256Digest,
  { documents, store }: ListingDeps
): Promise<{ readonly indexPresent: boolean; readonly index: Pick<ModelIndex, 'members'> }> {
  try {
    return { indexPresent: true, index: await documents.index(digest, { scan: true }) }
  } catch (error) {
    if (!(error instanceof LibraryError)) throw error
    // absent or invalid: the list omits its members, resolve reports the error
    return { indexPresent: stampOf(store.blobPath(digest)) !== undefined, index: { members: [] } }
  }
}
