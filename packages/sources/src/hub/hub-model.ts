import { TRANSFER_NICE } from '@svc/internal-workers'
import type { HubRepository, ImportChoice } from '@svc/library'
import { importSelectionOf, type ListableSource, namesOfSet } from '@svc/library/parts'
import { asLibrary } from './errors.ts'
import { HubDocumentReader } from './hub-documents.ts'
import { HubListings } from './listings.ts'
import { OwnersHub } from './owners-hub.ts'
import { followedBy, requireAskedRepo } from './target.ts'

/** Which hub, which commit, and what of it. */
export interface HubSourceOptions extends ImportChoice {
  /** A branch, tag or commit; default: the default branch. */
  readonly revision?: string
  /** Origin and path of the hub; default: the public one. */
  readonly endpoint?: string | undefined
  /** Sent to the hub, and to no other host. */
  readonly token?: string | undefined
  /** Which names GGUF files get; default: normalized ones, as `svc import` gives them. */
  readonly names?: ImportChoice['names']
}

/**
 * A repository of the model hub, for `import` of a library. Nothing is asked before. What is here, also from another repository or
 * an earlier attempt, is not fetched again; all bytes are compared with the hub's hashes.
 * @param repo `org/name`, or `name` for one without an owner
 */
export function hubSource(repo: string, options: HubSourceOptions = {}): HubRepository {
  const { revision, endpoint, token, ...choice } = options
  const asked = { repo, ...(revision !== undefined && { revision }) }
  const own = { endpoint, token }
  const source: HubRepository & ListableSource = {
    kind: 'hub',
    ...asked,
    choice: { names: 'normalized', ...choice },
    inProcessOnly: namesOfSet(own),
    list: async (library, { signal }) => {
      requireAskedRepo(asked)
      const selection = importSelectionOf(source.choice!)
      const documents = new HubDocumentReader()
      const owners = await asLibrary(
        () => new OwnersHub(own, { threadNice: TRANSFER_NICE, readDocument: documents.parse })
      )
      const close = async (): Promise<void> => {
        await owners.close()
        await documents.close()
      }
      try {
        const listings = new HubListings({ ...library, fetchUnrecognized: false })
        const signed = await owners.now()
        const listing = await listings.list(signed, asked, signal)
        const source = listings.sourceOf(signed, repo, listing, { follows: followedBy(asked) })
        return { source: { ...source, close }, selection }
      } catch (error) {
        await close()
        throw error
      }
    }
  }
  return source
}
