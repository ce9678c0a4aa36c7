import type { DiskBlobStore } from '@svc/cas'
import { advised } from './advice.ts'
import { StartError } from './errors.ts'
import { LibraryError } from './library/library-error.ts'
import * as marker from './library/move-marker.ts'
import * as opening from './library/opening.ts'

/** As the library's. @throws StartError for a root that is refused; one of a locked root: see {@link isLocked} */
export const openStore = (...of: Parameters<typeof opening.openStore>): Promise<DiskBlobStore> =>
  orRefused(opening.openStore(...of))

/** As the library's. @throws StartError for a root that is refused */
export const lookAtStore = (...of: Parameters<typeof opening.lookAtStore>): Promise<opening.FoundStore> =>
  orRefused(opening.lookAtStore(...of))

/** As the library's. @throws StartError when it cannot be read */
export const readMoveMarker = (root: string): Promise<marker.MoveMarker | undefined> =>
  orRefused(marker.readMoveMarker(root))

/** Whether a store was refused because another process has it. */
export const isLocked = (error: unknown): boolean =>
  error instanceof StartError && error.cause instanceof LibraryError && error.cause.code === 'E_LOCKED'

/** What the library refuses when a daemon starts, as errors for the person who started it. */
async function orRefused<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer
  } catch (cause) {
    throw cause instanceof LibraryError ? new StartError(advised(cause), { cause }) : cause
  }
}
