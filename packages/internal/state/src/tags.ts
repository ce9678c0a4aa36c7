import { withLease } from '@svc/cas'
import type { RepoId, Sha256Digest } from '@svc/ref'
import type { Documents } from './documents.ts'
import { LibraryError } from './library-error.ts'
import type { Needed } from './needed.ts'
import type { RepoState, Repos } from './repos.ts'
import { stampOf } from './stamp.ts'
import type { StoreState } from './state.ts'
import type { DamagedFile, UnreadableStateError } from './strict.ts'

/** One of the owner's tags. */
export interface ListedTag {
  /** `ns/name` */
  readonly repo: string
  readonly tag: string
  /** The index that it names. */
  readonly digest: Sha256Digest
  /** Whether that is here. */
  readonly blobPresent: boolean
}

/** A change of one of the owner's tags (spec ref.10). */
export interface TagChange extends RepoId {
  readonly tag: string
  /** The index snapshot; `current` is the repository's present one, `null` removes the tag. */
  readonly index: Sha256Digest | 'current' | null
}

/**
 * Sets or removes a tag. @returns the digest that it points to now, or pointed to before
 * @throws LibraryError `E_UNKNOWN_REF` for an unknown repository or tag, `E_NO_INDEX`, `E_INVALID_INDEX`
 */
export async function changeTag(
  { ns, name, tag, index }: TagChange,
  repos: Repos,
  documents: Documents
): Promise<Sha256Digest> {
  let digest: Sha256Digest | undefined
  await repos.update({ ns, name }, async (current) => {
    if (current === undefined || (current.index === undefined && index === 'current'))
      throw new LibraryError('E_UNKNOWN_REF', `there is no ${ns}/${name} here; import it first`)
    const tags = new Map(current.tags)
    if (index === null) {
      digest = tags.get(tag)
      if (digest === undefined) {
        throw new LibraryError('E_UNKNOWN_REF', `${ns}/${name} has no tag ${JSON.stringify(tag)}`, {
          candidates: [...tags.keys()].sort()
        })
      }
      tags.delete(tag)
    } else {
      digest = index === 'current' ? current.index! : index
      await documents.index(digest)
      if (tags.get(tag) === digest) return current
      tags.set(tag, digest)
    }
    return { index: current.index, tags }
  })
  return digest!
}

/** The same beside other work of the daemon: keeps what a snapshot needs from a collection until the state names it. */
export const changeTagHere = (
  change: TagChange,
  { repos, documents, needed, store }: Pick<StoreState, 'repos' | 'documents' | 'store'> & { readonly needed: Needed }
): Promise<Sha256Digest> =>
  withLease(store, async (lease) => {
    const { index } = change
    if (index !== null && index !== 'current') for (const blob of await needed.blobsOfIndex(index)) lease.keep(blob)
    return changeTag(change, repos, documents)
  })

/** The tags of one repository, by name. */
export const tagEntries = (
  repo: string,
  { tags }: Pick<RepoState, 'tags'>,
  store: Pick<StoreState['store'], 'blobPath'>
): ListedTag[] =>
  [...tags].sort(([a], [b]) => (a < b ? -1 : 1)).map(([tag, digest]) => tagEntry(repo, tag, digest, store))

/** A tag, and whether the index that it names is here. */
export const tagEntry = (
  repo: string,
  tag: string,
  digest: Sha256Digest,
  store: Pick<StoreState['store'], 'blobPath'>
): ListedTag => ({ repo, tag, digest, blobPresent: stampOf(store.blobPath(digest)) !== undefined })

/** All tags, or those of one repository. @throws UnreadableStateError when that one's record cannot be read */
export async function listTags(
  { repos, store }: Pick<StoreState, 'repos' | 'store'>,
  only: RepoId | undefined
): Promise<{ readonly tags: readonly ListedTag[]; readonly damaged?: readonly DamagedFile[] }> {
  if (only !== undefined) {
    const state = await repos.read(only.ns, only.name)
    return { tags: state === undefined ? [] : tagEntries(`${only.ns}/${only.name}`, state, store) }
  }
  const tags: ListedTag[] = []
  const damaged: DamagedFile[] = []
  const onUnreadable = ({ file, what }: UnreadableStateError): void => void damaged.push({ file, what })
  for await (const { ns, name, state } of repos.list(onUnreadable))
    tags.push(...tagEntries(`${ns}/${name}`, state, store))
  return { tags, ...(damaged.length > 0 && { damaged }) }
}
