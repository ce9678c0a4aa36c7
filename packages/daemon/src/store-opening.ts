import type { DiskBlobStore } from '@svc/cas'
import * as library from '@svc/library/parts'
import { advised } from './advice.ts'
import { StartError } from './errors.ts'

/** As the library's. @throws StartError for a root that is refused; one of a locked root: see {@link isLocked} */
export const openStore = (...of: Parameters<typeof library.openStore>): Promise<DiskBlobStore> =>
  orRefused(library.openStore(...of))

/** As the library's. @throws StartError for a root that is refused */
export const lookAtStore = (...of: Parameters<typeof library.lookAtStore>): Promise<library.FoundStore> =>
  orRefused(library.lookAtStore(...of))

/** As the library's. @throws StartError when it cannot be read */
export const readMoveMarker = (root: string): Promise<library.MoveMarker | undefined> =>
  orRefused(library.readMoveMarker(root))

/** Whether a store was refused because another process has it. */
export const isLocked = (error: unknown): boolean =>
  error instanceof StartError && error.cause instanceof library.LibraryError && error.cause.code === 'E_LOCKED'

/** What the library refuses when a daemon starts, as errors for the person who started it. */
async function orRefused<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer
  } catch (cause) {
    throw cause instanceof library.LibraryError ? new StartError(advised(cause), { cause }) : cause
  }
}
