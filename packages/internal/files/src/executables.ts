import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

export function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** The path of a program in PATH; relative folders are skipped. */
export const programInPath = (
  name: string,
  { PATH = '' }: { readonly PATH?: string | undefined }
): string | undefined =>
  PATH.split(delimiter)
    .filter((folder) => folder.startsWith('/'))
    .map((folder) => join(folder, name))
    .find(isExecutable)
