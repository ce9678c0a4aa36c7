import { constants, copyFile, link, lstat, readdir, readlink, symlink } from 'node:fs/promises'
import { dirname, join, posix } from 'node:path'
import { errnoOf } from '@svc/internal-errors'
import { isLinkRefused, makeFolders } from '@svc/internal-files'
import { ViewError } from './errors.ts'
import { formatMarker, MAX_MARKER_BYTES, type MarkedFile, type MarkedModel, type Marker, markerPath } from './marker.ts'
import { syncFolderIfPossible, writeNewFile } from './written-file.ts'

/** Writes the marker, and syncs the folders: the files were synced when they were written. */
export async function finishDraft(folder: string, marker: Marker, target: string): Promise<void> {
  const bytes = Buffer.from(formatMarker(marker))
  if (bytes.length > MAX_MARKER_BYTES)
    throw new ViewError('E_BAD_TARGET', `${target} has reached its limit of models; choose another folder`, {
      path: target
    })
  const path = join(folder, markerPath(marker.layout))
  await makeFolders(dirname(path))
  await writeNewFile(path, [bytes])
  await syncTree(folder)
}

/** Adds to each file of a hub cache the blob that it links to. Without symbolic links there is none. */
export function withBlobs(files: readonly MarkedFile[], folder: string): Promise<MarkedFile[]> {
  return Promise.all(
    files.map(async (file) => {
      if (!(await lstat(join(folder, file.at))).isSymbolicLink()) return file
      return { ...file, blob: posix.join(posix.dirname(file.at), await readlink(join(folder, file.at))) }
    })
  )
}

/** Carries a model's files over from the earlier view into the new one, unless that has them already. */
export async function carryOver({ files, others }: MarkedModel, from: string, to: string): Promise<void> {
  for (const { at, blob } of files) await carryFile(at, from, to, blob && posix.relative(posix.dirname(at), blob))
  for (const at of others) await carryFile(at, from, to)
}

/**
 * Links keep their text, which is right at the same place, or get `ownText`; copies get a hard link, and lose their
 * earlier name with the earlier view. What others deleted stays deleted.
 */
async function carryFile(at: string, from: string, to: string, ownText?: string): Promise<void> {
  const [source, target] = [join(from, at), join(to, at)]
  await makeFolders(dirname(target))
  try {
    if ((await lstat(source)).isSymbolicLink()) return await symlink(ownText ?? (await readlink(source)), target)
    await link(source, target).catch((error: unknown) => {
      if (!isLinkRefused(error)) throw error
      return copyFile(source, target, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE)
    })
  } catch (error) {
    if (!['ENOENT', 'EEXIST'].includes(errnoOf(error) ?? '')) throw error
  }
}

/** From the innermost folder outwards. */
async function syncTree(folder: string): Promise<void> {
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) await syncTree(join(folder, entry.name))
  }
  await syncFolderIfPossible(folder)
}
