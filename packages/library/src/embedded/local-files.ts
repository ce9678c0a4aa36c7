import { resolve } from 'node:path'
import type { LocalChoice, LocalFiles } from '@svc/internal-models'

/** Files and folders of this machine to import. Nothing is read before the import. @param paths relative ones: to the working folder */
export const localFiles = (paths: readonly string[], choice?: LocalChoice): LocalFiles => ({
  kind: 'local',
  paths: paths.map((path) => resolve(path)),
  ...(choice && { choice })
})
