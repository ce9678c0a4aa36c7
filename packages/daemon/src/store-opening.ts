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

/** Whether a store was refused because another process has it. */
export const isLocked = (error: unknown): boolean =>
  error instanceof StartError && error.cause instanceof library.LibraryError && error.cause.code === 'E_LOCKED'

const REFUSALS: ReadonlySet<library.LibraryErrorCode> = new Set([
  'E_LOCKED',
  'E_OTHER_STORE',
  'E_NO_STORE',
  'E_UNFINISHED_COPY',
  'E_ROOT'
])

/** The result of opening a store, or of work that begins so. @throws StartError for a root that the library refuses */
export async function orRefused<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer
  } catch (cause) {
    const isRefusal = cause instanceof library.LibraryError && REFUSALS.has(cause.code)
    throw isRefusal ? new StartError(advised(cause), { cause }) : cause
  }
}
