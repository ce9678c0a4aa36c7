import { lstat, open, readdir, realpath, stat } from 'node:fs/promises'
import { dirname, join, resolve, sep } from 'node:path'
import type { DiskBlobStore } from '@svc/cas'
import { makeFolders } from '@svc/internal-files'
import { LibraryError, lookAtStore, readMoveMarker, type StorePlace } from '@svc/internal-state'

/** The two roots of a move, absolute and without links. */
export interface MovePlaces {
  readonly from: string
  readonly to: string
}

/** Checks both places: the new one must be absent, empty, or left by an earlier attempt. @throws LibraryError `E_ROOT` */
export async function checkPlaces(store: StorePlace, toPath: string): Promise<MovePlaces> {
  await lookAtStore(store, { mayMake: false })
  const from = await realpath(store.root)
  const to = await realOf(resolve(toPath))
  if (to === from) throw new LibraryError('E_ROOT', `the store is at ${to} already`)
  if (to.startsWith(from + sep))
    throw new LibraryError('E_ROOT', `${to} lies inside the store ${from}; choose a folder outside`)
  const found = await kind(to)
  if (found === 'absent') return { from, to }
  if (found !== 'folder') throw new LibraryError('E_ROOT', `${to} is not a folder`)
  const marker = await readMoveMarker(to)
  if (marker?.from === from) return { from, to }
  if (marker !== undefined)
    throw new LibraryError('E_ROOT', `a move of ${marker.from} to ${to} has begun; choose another folder`)
  const [first] = await readdir(to)
  if (first === undefined) return { from, to }
  throw new LibraryError(
    'E_ROOT',
    (await kind(join(to, 'format'))) === 'file'
      ? `${to} is another store; choose an empty folder`
      : `${to} is not empty: it holds "${first}"; choose an empty folder, or a new one in it: ${join(to, 'models')}`
  )
}

/** Creates the new root, 0700. @throws LibraryError `E_ROOT` */
export async function makeRoot(to: string): Promise<void> {
  try {
    await makeFolders(to, 0o700)
  } catch (cause) {
    throw new LibraryError('E_ROOT', `cannot make ${to} (${(cause as NodeJS.ErrnoException).code})`, { cause })
  }
}

async function kind(path: string): Promise<'absent' | 'file' | 'folder' | 'other'> {
  try {
    const found = await stat(path)
    return found.isFile() ? 'file' : found.isDirectory() ? 'folder' : 'other'
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    if (code === 'ENOENT') return 'absent'
    throw new LibraryError('E_ROOT', `cannot look at ${path} (${code})`, { cause })
  }
}

/** Resolves links in a path whose last components may not exist. */
async function realOf(path: string): Promise<string> {
  let rest = ''
  for (let at = path; ; at = dirname(at)) {
    try {
      return join(await realpath(at), rest)
    } catch (cause) {
      const { code } = cause as NodeJS.ErrnoException
      if (code !== 'ENOENT' || at === dirname(at))
        throw new LibraryError('E_ROOT', `cannot look at ${at} (${code})`, { cause })
      rest = join(at.slice(dirname(at).length), rest)
    }
  }
}

/** Whether the new store can share blocks with the old place, so that a copy takes no space. */
export async function sharesBlocks(from: string, target: DiskBlobStore): Promise<boolean> {
  const file = await open(join(from, 'format'))
  try {
    return await target.sharesBlocks({ fd: file.fd })
  } finally {
    await file.close()
  }
}

/** Bytes on disk that deleting a folder would free; links are not followed. */
export async function occupiedBytes(folder: string): Promise<number> {
  let sum = 0
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    sum += entry.isDirectory() ? await occupiedBytes(path) : (await lstat(path)).blocks * 512
  }
  return sum
}
