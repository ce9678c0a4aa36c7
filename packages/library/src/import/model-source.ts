import type { Library, Offload } from '@svc/internal-state'
import type { RepoId } from '@svc/ref'
import type { Room } from '../operations/room.ts'
import type { Work } from '../operations/work.ts'
import type { ImportSelection } from './selection.ts'
import type { ImportSource } from './source.ts'

/** Models of another place, to be imported: made by `hubSource` of `@svc/sources/hub`, and the like. */
export interface ModelSource {
  readonly kind: 'hub' | 'oci' | 'catalog'
}

/** What a source gets of the library that imports from it. */
export interface SourceParts extends Library {
  readonly room: Pick<Room, 'require'>
  readonly offload: Offload
}

/** A {@link ModelSource} as the library uses it. */
export interface ListableSource extends ModelSource {
  /** Lists it, or brings its files into the store. @param as the name to import under */
  list(
    library: SourceParts,
    work: Work,
    as: RepoId
  ): Promise<{ readonly source: ImportSource; readonly selection: ImportSelection }>
}

export const isListable = (source: object): source is ListableSource => 'list' in source
