import { resolve } from 'node:path'
import {
  CasError,
  type CasErrorCode,
  type DiskBlobStore,
  type DiskStoreOptions,
  lookAtRoot,
  openDiskStore,
  type RootState
} from '@svc/cas'
import { LibraryError, type LibraryErrorCode } from './library-error.ts'
import { endMove, requireComplete } from './move-marker.ts'
import { STATE_FOLDERS } from './replace.ts'
import { RootMemory } from './root-memory.ts'

/** Which store. */
export interface StorePlace {
  readonly root: string
  /** The id of the store that must be there. */
  readonly expect?: string | undefined
  /** Where it is remembered which store each root had; undefined: nowhere. */
  readonly memory?: string | undefined
  /** Whatever the root had before, what is there now is right. */
  readonly isNew?: boolean | undefined
}

/** A root that a move or a restore fills: they know which store it shall have. */
export type FilledPlace = Omit<StorePlace, 'expect'>

/** How to open it. */
interface OpeningOptions extends Pick<DiskStoreOptions, 'clock' | 'filePort' | 'hashThreads'> {
  /** For the root that a move or a restore fills, whose marker stays: the id that the store has there. */
  readonly newId?: string
  /** Default true: a store is made in a root that is absent or empty. */
  readonly mayMake?: boolean
  /** Hears why it is not remembered which store the root has. */
  readonly onForgotten?: (problem: string) => void
}

/** What is at a root, and why it is not known which store it had before. */
export interface FoundStore extends RootState {
  readonly problem?: string | undefined
}

/**
 * What opening a root would find there; changes nothing. Every command and the daemon refuse the same roots, and a
 * root that is refused stays as it was (spec disk.25). @throws LibraryError `E_LOCKED`, `E_OTHER_STORE`, `E_NO_STORE`,
 * `E_UNFINISHED_COPY`, `E_ROOT` for a root that is refused
 */
export async function lookAtStore(
  place: StorePlace,
  { filePort, newId, mayMake = true }: Pick<OpeningOptions, 'filePort' | 'newId' | 'mayMake'> = {}
): Promise<FoundStore> {
  const { root, expect } = place
  const isFilled = newId !== undefined
  // a root that is not filled yet lacks folders of a store
  if (!isFilled) await requireComplete(root)
  const found = await orRefused(place, () =>
    lookAtRoot({
      root,
      expectedId: expect,
      ...(!isFilled && { folders: STATE_FOLDERS }),
      ...(filePort && { filePort })
    })
  )
  const problem = await requireRemembered(place, found, newId)
  if (!mayMake && found.content !== 'store')
    throw new LibraryError('E_NO_STORE', `there is no store at ${root}`, { advice: { to: 'make-store' } })
  return { ...found, problem }
}

/** The one way to open a store, under its root's lock. @throws as {@link lookAtStore} */
export async function openStore(place: StorePlace, options: OpeningOptions = {}): Promise<DiskBlobStore> {
  const { newId, mayMake, onForgotten = () => undefined, ...parts } = options
  const { id, problem } = await lookAtStore(place, options)
  if (problem !== undefined) onForgotten(problem)
  const { root, expect } = place
  const isFilled = newId !== undefined
  const store = await orRefused(place, () =>
    // what was found is what is opened, even if its disk goes away meanwhile
    openDiskStore({ root, expectedId: expect ?? id, newId, ...(!isFilled && { folders: STATE_FOLDERS }), ...parts })
  )
  try {
    if (isFilled) return store
    await endMove(store.root)
    await memoryOf(place)
      ?.remember(resolve(root), store.id, options.clock)
      .catch((error: Error) => onForgotten(error.message))
    return store
  } catch (error) {
    await store.close()
    throw error
  }
}

const memoryOf = ({ root, memory }: StorePlace): RootMemory | undefined => RootMemory.of(resolve(root), memory)

/**
 * A root that had a store must have it still: an empty mount point must not become a new store (spec disk.26).
 * @returns why the memory cannot be read. @throws LibraryError `E_OTHER_STORE` naming both stores
 */
async function requireRemembered(
  place: StorePlace,
  { content, id }: RootState,
  newId: string | undefined
): Promise<string | undefined> {
  const { root, expect, isNew = false } = place
  const { id: before, problem } = (await memoryOf(place)?.recall(resolve(root))) ?? {}
  const isRight = id === undefined ? before === newId : [before, newId, expect].includes(id)
  if (before === undefined || isRight || isNew) return problem
  const now =
    content === 'store'
      ? id === undefined
        ? 'a store without an id'
        : `the store ${id}`
      : `no store (it is ${content})`
  const advice = { to: content === 'store' ? 'accept-store' : 'make-store-there' } as const
  throw new LibraryError(
    'E_OTHER_STORE',
    `${root} had the store ${before}, and now holds ${now}; is its disk mounted?`,
    { advice }
  )
}

const REFUSED: Readonly<Partial<Record<CasErrorCode, LibraryErrorCode>>> = {
  E_LOCKED: 'E_LOCKED',
  E_OTHER_STORE: 'E_OTHER_STORE',
  E_STORE_GONE: 'E_NO_STORE'
}

async function orRefused<T>({ root, expect }: StorePlace, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (cause) {
    if (!(cause instanceof CasError)) throw cause
    throw new LibraryError(REFUSED[cause.code] ?? 'E_ROOT', `the store ${root} cannot be opened: ${cause.message}`, {
      cause,
      ...(cause.code === 'E_OTHER_STORE' && expect !== undefined && { advice: { to: 'expect-store' } })
    })
  }
}
