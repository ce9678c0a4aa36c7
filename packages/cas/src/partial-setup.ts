import type { Journal } from './journal.ts'
import type { ByteRanges, PartialKey, PartialOptions } from './store.ts'
import type { StoreContext } from './store-context.ts'
import type { Unsynced } from './unsynced.ts'

/** A released partial, which the next holder of its key opens again. */
export interface PartialRemains {
  readonly id: string
  readonly journal: Journal
}

export interface PartialSetup {
  readonly context: StoreContext
  readonly id: string
  readonly fd: number
  readonly key: PartialKey
  readonly ranges: ByteRanges
  readonly options: PartialOptions
  /** Longest time until written bytes are in the journal. */
  readonly checkpointMs: number
  /** Of the store. */
  readonly unsynced: Unsynced
  /** Called when bytes were written or taken back. */
  readonly onChange: () => void
  /** Called once, at the end: releases the key and records what can be resumed. */
  readonly onEnd: (remains: PartialRemains | undefined) => void
}
