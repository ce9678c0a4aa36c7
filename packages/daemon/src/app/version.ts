import { createRequire } from 'node:module'

/** The version of this package, whose manifest is one folder up, from `src` as well as from `dist`. */
export const VERSION: string = (createRequire(import.meta.url)('@svc/daemon/package.json') as { version: string })
  .version
