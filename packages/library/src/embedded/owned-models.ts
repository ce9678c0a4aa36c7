import type { Models, WorkOptions } from '@svc/internal-models'
import type { Collected, CollectOptions } from '../operations/collect.ts'

/** A store that this process owns. */
export interface OwnedModels extends Models {
  /** The folder of the store. */
  readonly root: string
  /** Removes, or with `dryRun` counts, blobs that no name needs and nobody has open. */
  collect(what?: CollectOptions, options?: WorkOptions): Promise<Collected>
  /** Ends what runs, and releases the store. What `open` handed out is no longer kept. Idempotent. */
  close(): Promise<void>
}
