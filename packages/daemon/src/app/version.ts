import { createRequire } from 'node:module'

/** Of this package; the file lies one folder up, both from `src` and from `dist`. */
export const VERSION: string = (createRequire(import.meta.url)('@svc/daemon/package.json') as { version: string })
  .version
