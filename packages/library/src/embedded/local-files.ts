import { resolve } from 'node:path'
import type { LocalFiles } from './models.ts'

/** Files and folders of this machine to import. Nothing is read before the import. @param paths relative ones: to the working folder */
export const localFiles = (paths: readonly string[]): LocalFiles => ({
  kind: 'local',
  paths: paths.map((path) => resolve(path))
})
