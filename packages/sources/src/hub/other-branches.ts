import { ClassifyError } from '@svc/classify'
import { type Hub, HubError } from '@svc/hub'
import { LibraryError } from '@svc/library/parts'
import type { AskedRepo } from './target.ts'

const MAX_SHOWN = 20

/**
 * For `catch` of a plan: where the default branch has nothing to import, the other branches may have it, as those of EXL2 and
 * EXL3, one for each number of bits. @throws the error, or one that names the branches
 */
export async function throwWithBranches(
  error: unknown,
  hub: Pick<Hub, 'branches'>,
  { repo, revision }: AskedRepo
): Promise<never> {
  if (!(error instanceof ClassifyError) || error.code !== 'E_NOT_IMPORTABLE' || revision !== undefined) throw error
  const branches = await hub.branches(repo).catch((failure: unknown) => {
    if (failure instanceof HubError) throw error
    throw failure
  })
  const others = branches.filter((name) => name !== 'main' && !name.startsWith('refs/')).slice(0, MAX_SHOWN)
  if (others.length === 0) throw error
  const what = `${error.message}; its branches are ${others.join(', ')}: choose one, as ${repo}@${others[0]}`
  // files in other formats are something to import, too
  const candidates = error.details.reason === undefined ? others : (error.details.candidates ?? others)
  throw new LibraryError('E_BAD_LISTING', what, { candidates, cause: error })
}
