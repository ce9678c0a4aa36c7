import type { ReaderLeases } from '@svc/internal-models'
import type { ComingModels } from './coming.ts'
import type { Holdings } from './holdings.ts'
import type { KeptPorts } from './kept-ports.ts'
import type { LeafLayers } from './leaf-layers.ts'
import type { Advise } from './library-error.ts'
import type { Members } from './members.ts'
import type { Needed } from './needed.ts'
import type { NewerCommits } from './newer-commits.ts'
import type { ReplacedFiles } from './replace.ts'
import type { Resolver } from './resolve.ts'
import type { SignedModels } from './signed-models.ts'
import type { Snapshots } from './snapshots.ts'
import type { StoreState } from './state.ts'
import type { Superseded } from './superseded.ts'
import type { TrustRules } from './trust.ts'
import type { Usage } from './usage.ts'
import type { Views } from './views.ts'
import type { WantedBlobs } from './wanted-blobs.ts'

/** The objects of this room, for the others: these name the parts that they need with `Pick`. */
export interface Library extends StoreState {
  readonly advise: Advise
  /** Writes records below `state/`. */
  readonly files: ReplacedFiles
  readonly ports: KeptPorts
  readonly resolver: Resolver
  readonly leafLayers: LeafLayers
  readonly readerLeases: ReaderLeases
  readonly usage: Usage
  readonly needed: Needed
  readonly views: Views
  readonly holdings: Holdings
  readonly members: Members
  readonly snapshots: Snapshots
  readonly trust: TrustRules
  readonly signed: SignedModels
  readonly superseded: Superseded
  readonly newer: NewerCommits
  readonly wanted: WantedBlobs
  readonly coming: ComingModels
}
