import type { DiskBlobStore } from '@svc/cas'
import type { Clock } from '@svc/internal-clock'
import type { Log } from '../log.ts'
import type { Artifacts } from './artifacts.ts'
import type { Documents } from './documents.ts'
import type { Repos } from './repos.ts'

/** The store and what is recorded of it. Objects name the parts that they need with `Pick`; `app` makes them. */
export interface StoreState {
  readonly clock: Clock
  readonly log: Log
  readonly store: DiskBlobStore
  readonly repos: Repos
  readonly artifacts: Artifacts
  readonly documents: Documents
}
