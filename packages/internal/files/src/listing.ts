import type { Dirent } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { errnoOf } from '@svc/internal-errors'

/**
 * The entries of a folder that has to exist: a missing one is an error like any other, and never an empty list.
 * @throws the system's error, ENOENT among them
 */
export const listFolder = (folder: string): Promise<Dirent[]> => readdir(folder, { withFileTypes: true })

/** The entries of a folder that is made when it is first needed; none while it is absent. @throws the system's other errors */
export async function listFolderIfPresent(folder: string): Promise<Dirent[]> {
  try {
    return await listFolder(folder)
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return []
    throw error
  }
}
