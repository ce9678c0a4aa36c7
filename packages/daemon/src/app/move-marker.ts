import { readFile, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { nodeFilePort, replaceFile, syncFolder } from '@svc/internal-files'
import { StartError } from '../errors.ts'

/** In the new root of a move: where it is filled from, and whether it is whole. */
export interface MoveMarker {
  /** The old root. */
  readonly from: string
  readonly state: 'copying' | 'complete'
}

const FILE = 'moving.json'

/** undefined where there is none. @throws StartError for one that cannot be read */
export async function readMoveMarker(root: string): Promise<MoveMarker | undefined> {
  const path = join(root, FILE)
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw new StartError(`${path} cannot be read (${code})`, { cause })
  }
  try {
    const { from, state } = JSON.parse(text) as Partial<MoveMarker>
    if (typeof from === 'string' && (state === 'copying' || state === 'complete')) return { from, state }
  } catch {
    // said below
  }
  throw new StartError(`${path} does not make sense; it tells that a move to ${root} was begun`)
}

/** Durable when it resolves. */
export const writeMoveMarker = (root: string, { from, state }: MoveMarker): Promise<void> =>
  replaceFile(nodeFilePort, join(root, FILE), Buffer.from(`${JSON.stringify({ from, state }, null, 2)}\n`))

/**
 * Under the root's lock, before anything changes in it: one that a move has not filled yet is refused; from here on any other is a store of
 * its own, to which no move writes. @throws StartError
 */
export async function endMove(root: string): Promise<void> {
  const marker = await readMoveMarker(root)
  if (marker === undefined) return
  if (marker.state === 'copying')
    throw new StartError(
      `the move of ${marker.from} to ${root} is not complete, and the old store is the one to use; to go on: svc move ${root}`
    )
  await unlink(join(root, FILE))
  await syncFolder(nodeFilePort, root)
}
