import type { ModelSource } from '@svc/internal-models'
import type { Library, Offload } from '@svc/internal-state'
import type { RepoId } from '@svc/ref'
import type { Room } from '../operations/room.ts'
import type { Work } from '../operations/work.ts'
import type { ImportSelection } from './selection.ts'
import type { ImportSource } from './source.ts'

/** What a source gets of the library that imports from it. */
export interface SourceParts extends Library {
  readonly room: Pick<Room, 'require'>
  readonly offload: Offload
}

/** How a library in this process imports from a {@link ModelSource}. */
export interface ListableSource {
  /** Lists it, or brings its files into the store. @param as the name to import under */
  list(
    library: SourceParts,
    work: Work,
    as: RepoId
  ): Promise<{ readonly source: ImportSource; readonly selection: ImportSelection }>
}

export const isListable = (source: ModelSource): source is ModelSource & ListableSource => 'list' in source

/** For {@link ModelSource}'s `inProcessOnly`: the names of options that are set. */
export const namesOfSet = (options: object): readonly string[] =>
  Object.entries(options).flatMap(([name, value]) => (value === undefined ? [] : [name]))
