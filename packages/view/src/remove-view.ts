import { basename, dirname, join } from 'node:path'
import { makeFolders } from '@svc/internal-files'
import type { Sha256Digest } from '@svc/ref'
import { discardView, openDraft, recoverViews } from './draft.ts'
import { carryOver, finishDraft } from './draft-content.ts'
import { ioError } from './errors.ts'
import { type MarkedModel, modelsOf } from './marker.ts'
import { readOwnView } from './own-view.ts'
import { checkedTarget, inTurn } from './target.ts'
import { writeNewFile } from './written-file.ts'

/**
 * Removes a view; for observers it disappears at once. Only folders with a view's marker are removed, no link is
 * followed (the blobs behind links stay), and a view in which someone stored other files is left unchanged.
 * @param manifest only this model of a hub cache; the folder goes with the last one
 * @returns false when nothing was there.
 * @throws ViewError `E_NOT_A_VIEW`, `E_BAD_TARGET`, `E_NO_SPACE`, `E_IO`.
 */
export async function removeView(path: string, manifest?: Sha256Digest): Promise<boolean> {
  const target = await checkedTarget(path)
  if (target === undefined) return false
  return inTurn(target, () => removeAt(target, manifest))
}

async function removeAt(target: string, manifest: Sha256Digest | undefined): Promise<boolean> {
  await recoverViews(dirname(target))
  const marker = await readOwnView(target)
  if (marker === undefined) return false
  const models = modelsOf(marker)
  const removed = models.filter((each) => manifest === undefined || each.manifest === manifest)
  const [latest, ...earlier] = models.filter((each) => !removed.includes(each))
  try {
    if (removed.length === 0) return false
    if (latest === undefined) return await discardView(target)
    const draft = await openDraft(target)
    try {
      await writeRefs(removed, [latest, ...earlier], draft.folder)
      for (const model of [latest, ...earlier]) await carryOver(model, target, draft.folder)
      const { format, layout } = marker
      await finishDraft(draft.folder, { format, layout, ...latest, ...(earlier.length > 0 && { earlier }) }, target)
      await draft.moveIntoPlace()
      return true
    } finally {
      await draft.dispose()
    }
  } catch (error) {
    throw ioError(error, 'remove the view', target)
  }
}

/** In the repository of a removed model, `main` becomes the commit of the latest model that stays. */
async function writeRefs(removed: readonly MarkedModel[], kept: readonly MarkedModel[], to: string): Promise<void> {
  for (const repo of new Set(removed.map(({ folder }) => dirname(dirname(folder))))) {
    const heir = kept.find(({ folder }) => dirname(dirname(folder)) === repo)
    if (heir === undefined) continue
    await makeFolders(join(to, repo, 'refs'))
    await writeNewFile(join(to, repo, 'refs/main'), [Buffer.from(basename(heir.folder))])
  }
}
