import type { DiskBlobStore } from '@svc/cas'
import type { Clock } from '@svc/internal-clock'
import type { Artifacts } from './artifacts.ts'
import type { Documents } from './documents.ts'
import type { Log } from './log.ts'
import type { Repos } from './repos.ts'

/** The store and its records. Objects name the parts they need with `Pick`; `app` creates them. */
export interface StoreState {
  readonly clock: Clock
  readonly log: Log
  readonly store: DiskBlobStore
  readonly repos: Repos
  readonly artifacts: Artifacts
  readonly documents: Documents
}
