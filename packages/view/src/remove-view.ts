import { dirname } from 'node:path'
import { discardView, recoverViews } from './draft.ts'
import { ioError } from './errors.ts'
import { readOwnView } from './own-view.ts'
import { checkedTarget } from './target.ts'
import { inTurn } from './turns.ts'

/**
 * Removes a view; for observers it disappears at once. Only folders with a view's marker are removed, no link is
 * followed (the blobs behind links stay), and a view in which someone stored other files is left unchanged.
 * @returns false when nothing was there.
 * @throws ViewError `E_NOT_A_VIEW`, `E_BAD_TARGET`, `E_IO`.
 */
export async function removeView(path: string): Promise<boolean> {
  const target = await checkedTarget(path)
  if (target === undefined) return false
  return inTurn(target, () => removeAt(target))
}

async function removeAt(target: string): Promise<boolean> {
  await recoverViews(dirname(target))
  if ((await readOwnView(target)) === undefined) return false
  try {
    return await discardView(target)
  } catch (error) {
    throw ioError(error, 'remove the view', target)
  }
}
