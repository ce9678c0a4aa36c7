import type { RepoId, Sha256Digest } from '@svc/ref'
import { DaemonError } from '../errors.ts'
import type { Documents } from './documents.ts'
import type { Repos } from './repos.ts'

/** A change of one of the owner's tags (spec ref.10). */
export interface TagChange extends RepoId {
  readonly tag: string
  /** The index snapshot; `current` is the repository's present one, `null` removes the tag. */
  readonly index: Sha256Digest | 'current' | null
}

/**
 * Sets or removes a tag. @returns the digest that it points to now, or pointed to before
 * @throws DaemonError `E_UNKNOWN_REF` for an unknown repository or tag, `E_NO_INDEX`, `E_INVALID_INDEX`
 */
export async function changeTag(
  { ns, name, tag, index }: TagChange,
  repos: Repos,
  documents: Documents
): Promise<Sha256Digest> {
  let digest: Sha256Digest | undefined
  await repos.update({ ns, name }, async (current) => {
    if (current === undefined || (current.index === undefined && index === 'current'))
      throw new DaemonError('E_UNKNOWN_REF', `there is no ${ns}/${name} here; import it first`)
    const tags = new Map(current.tags)
    if (index === null) {
      digest = tags.get(tag)
      if (digest === undefined) {
        throw new DaemonError('E_UNKNOWN_REF', `${ns}/${name} has no tag ${JSON.stringify(tag)}`, {
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
