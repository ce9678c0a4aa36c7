import { createHash } from 'node:crypto'
import { link, lstat, realpath, symlink } from 'node:fs/promises'
import { basename, dirname, join, relative, sep } from 'node:path'
import { errnoOf, ifAbsent } from '@svc/internal-errors'
import { isLinkRefused, openRegular, readChunks } from '@svc/internal-files'
import type { Sha256Digest } from '@svc/ref'
import { ViewError } from './errors.ts'
import { reflink } from './reflink.ts'
import { writeNewFile } from './written-file.ts'

/** How the files of a view get their bytes. */
export type ViewMode = 'symlink' | 'copy' | 'hardlink'

/** A blob for a view: its path, and its expected size and digest. */
export interface Blob {
  readonly path: string
  readonly digest: Sha256Digest
  readonly sizeBytes: number
}

export interface Placement {
  readonly to: string
  /** Its final path, which relative links are made for. */
  readonly finalPath: string
}

export interface PlaceContext {
  readonly mode: ViewMode
  /** Links from below this folder to a blob below it are relative, so that the folder can be moved as a whole. */
  readonly root: string | undefined
  readonly signal: AbortSignal | undefined
  readonly onCopied: ((bytes: number) => void) | undefined
}

/** Checks the blob's size before anything is created. @returns false when it is absent. */
export async function isPresent(blob: Blob): Promise<boolean> {
  const stats = await lstat(blob.path).catch(ifAbsent)
  if (stats === undefined) return false
  if (!stats.isFile() || stats.size !== blob.sizeBytes) {
    const found = stats.isFile() ? `${stats.size} bytes` : 'not a regular file'
    throw corrupt(blob, `is ${found} instead of ${blob.sizeBytes} bytes`)
  }
  return true
}

/** The target of a symbolic link to a blob: relative within `root`, otherwise absolute. All paths are real ones. */
function linkText(finalPath: string, blobPath: string, root: string | undefined): string {
  const inRoot = (path: string): boolean =>
    root !== undefined && path.startsWith(root.endsWith(sep) ? root : root + sep)
  return inRoot(finalPath) && inRoot(blobPath) ? relative(dirname(finalPath), blobPath) : blobPath
}

/**
 * Creates one file of a view. Copied bytes are hashed on the way; a reflink, like a link, shares the store's own
 * blocks.
 * @throws ViewError `E_CORRUPT_BLOB`, `E_NOT_LINKABLE`, `E_ABORTED`; errors of the file system as they are.
 */
export async function placeBlob(blob: Blob, { to, finalPath }: Placement, context: PlaceContext): Promise<void> {
  if (context.mode === 'copy') return copyBlob(blob, to, context)
  try {
    if (context.mode === 'hardlink') await link(blob.path, to)
    else await symlink(linkText(finalPath, await realpathOf(blob.path), context.root), to)
  } catch (error) {
    const errno = errnoOf(error)
    if (errno !== 'EXDEV' && !isLinkRefused(error)) throw error
    const what = context.mode === 'hardlink' ? 'hard link' : 'symbolic link'
    const message = `${finalPath} cannot be a ${what} to ${blob.path} (${errno}); use copies instead`
    throw new ViewError('E_NOT_LINKABLE', message, { path: finalPath, digest: blob.digest }, error)
  }
}

/** The real path of a file that may be absent, as may its folders. */
async function realpathOf(path: string): Promise<string> {
  try {
    return await realpath(path)
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT' || dirname(path) === path) throw error
    return join(await realpathOf(dirname(path)), basename(path))
  }
}

async function copyBlob(blob: Blob, to: string, context: PlaceContext): Promise<void> {
  await copyShown(blob, to, context)
}

/**
 * Copies a file of known length; with a digest, copied bytes are hashed on the way.
 * @returns whether the file system shares the blocks instead. @throws as {@link placeBlob}
 */
export async function copyShown(
  file: Omit<Blob, 'digest'> & { readonly digest?: Sha256Digest | undefined },
  to: string,
  { signal, onCopied }: Partial<PlaceContext>
): Promise<boolean> {
  const { path, sizeBytes, digest } = file
  if (await reflink(path, to)) {
    const { size } = await lstat(to)
    if (size !== sizeBytes) throw corrupt(file, `is ${size} bytes instead of ${sizeBytes} bytes`)
    onCopied?.(sizeBytes)
    return true
  }
  await using handle = await openRegular(path)
  const hashing = digest === undefined ? [] : [createHash('sha256')]
  const written = await writeNewFile(to, readChunks(handle), hashing, { signal, onBytes: onCopied })
  const found = digest === undefined ? undefined : `sha256:${written.hashes[0]}`
  if (found !== digest) throw corrupt(file, `contains the bytes of ${found}`)
  if (written.sizeBytes !== sizeBytes)
    throw corrupt(file, `is ${written.sizeBytes} bytes instead of ${sizeBytes} bytes`)
  return false
}

export const corrupt = (
  { path, digest }: Pick<Blob, 'path'> & { readonly digest?: Sha256Digest | undefined },
  what: string
): ViewError =>
  new ViewError('E_CORRUPT_BLOB', `${digest === undefined ? path : `the blob ${digest}`} ${what}; verify the store`, {
    path,
    ...(digest !== undefined && { digest })
  })
