import { readFile, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { nodeFilePort, replaceFile, syncFolder } from '@svc/internal-files'
import { LibraryError } from './library-error.ts'

/** A file in the new root of a move: which store it is filled from, and whether it is complete. */
export interface MoveMarker {
  /** The old root. */
  readonly from: string
  readonly state: 'copying' | 'complete'
  /** It is filled from a backup, and `from` is its place. */
  readonly isRestore?: boolean
}

const FILE = 'moving.json'

/** Undefined if there is none. @throws LibraryError `E_ROOT` when it cannot be read */
export async function readMoveMarker(root: string): Promise<MoveMarker | undefined> {
  const path = join(root, FILE)
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw new LibraryError('E_ROOT', `${path} cannot be read (${code})`, { cause })
  }
  try {
    const { from, state, isRestore } = JSON.parse(text) as Partial<MoveMarker>
    if (typeof from === 'string' && (state === 'copying' || state === 'complete'))
      return { from, state, isRestore: isRestore === true }
  } catch {
    // reported below
  }
  throw new LibraryError('E_ROOT', `${path} is malformed; it should record the move to ${root} that has begun`)
}

/** Resolves when the marker is durable. */
export const writeMoveMarker = (root: string, { from, state, isRestore }: MoveMarker): Promise<void> =>
  replaceFile(nodeFilePort, join(root, FILE), Buffer.from(`${JSON.stringify({ from, state, isRestore }, null, 2)}\n`))

/** Refuses a root whose move or restore is incomplete. @throws LibraryError `E_UNFINISHED_COPY`, `E_ROOT` */
export async function requireComplete(root: string): Promise<MoveMarker | undefined> {
  const marker = await readMoveMarker(root)
  if (marker?.state !== 'copying') return marker
  const { from, isRestore = false } = marker
  throw new LibraryError(
    'E_UNFINISHED_COPY',
    isRestore
      ? `the restore of ${from} to ${root} is not complete`
      : `the move of ${from} to ${root} is not complete, and the old store stays in use`,
    { advice: { to: 'continue-copy', isRestore, from, root } }
  )
}

/**
 * Called under the root's lock, before any change. A root that was completed becomes a store of its own, which the move
 * no longer writes to. @throws as {@link requireComplete}
 */
export async function endMove(root: string): Promise<void> {
  if ((await requireComplete(root)) !== undefined) await endMarker(root)
}

/** The root is a store of its own from now on. */
export async function endMarker(root: string): Promise<void> {
  await unlink(join(root, FILE))
  await syncFolder(nodeFilePort, root)
}
