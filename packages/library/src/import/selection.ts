import type { FileSelection, OwnersChoice } from '@svc/classify'

/**
 * Which artifacts an import may replace under its name: any (`true`, the default), none, or only those from the same
 * repository of the hub, so that a newer commit can replace an older one (spec add.45).
 */
export type MayReplace = boolean | 'same-repository'

/** Which files of a source make up an import, as recognition sees their names. */
export interface SourceSelection extends FileSelection {
  readonly normalizedNames: boolean
  /** Every file is taken as it is (spec rec.32), pickles only if the owner says so. */
  readonly opaque?: { readonly allowsPickles: boolean } | undefined
}

/** What the caller selects for an import (spec add.1, add.6, add.10), validated. */
export interface ImportSelection extends SourceSelection {
  readonly private: boolean
  readonly mayReplace: MayReplace
  /** What the name stands for now gets a tag if it changes. */
  readonly keepBefore: boolean
  /** Weights that no runtime can load end the import. */
  readonly refusesMalformed: boolean
  /** All of it, as the request spells it, to be recorded. */
  readonly choice: OwnersChoice
  /** If it does not fit, models that can be fetched again may be evicted. */
  readonly mayEvict: boolean
}
