import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { dirname, join } from 'node:path'
import type { FilePort } from './file-port.ts'
import { syncFolder } from './folder.ts'
import { writeFully } from './whole.ts'

/** The names of temporary files of {@link replaceFile}: a sweep may delete matching files that are not in use. */
export const TEMPORARY_FILE = /(?:^|\.)[0-9a-f]{16}\.tmp$/

const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW

interface ReplaceOptions {
  /** Folder of the temporary file, on the same file system; default: that of the file. */
  readonly temporaryFolder?: string
  /** False for a cache: readers never see a partial file, but a power loss may lose the new one. Default true. */
  readonly durable?: boolean
  /** Its mode and, as far as we may, its owner; default: 0600, ours. */
  readonly like?: { readonly mode: number; readonly uid: number; readonly gid: number } | undefined
}

/**
 * Replaces a small file atomically and durably: temporary file → fsync → rename → fsync of the folder, which must
 * exist. The file has mode 0600 (spec disk.6), unless `like` says otherwise. After a crash it has either the old or the new content;
 * once this has resolved, the new.
 *
 * An error, even of fsync, is final and leaves no temporary file. The old content is then unchanged, unless only the
 * last step, the sync of the folder, failed: readers may see the new content in that case.
 * @throws the system's error
 */
export async function replaceFile(
  port: FilePort,
  path: string,
  bytes: Uint8Array,
  { temporaryFolder, durable = true, like }: ReplaceOptions = {}
): Promise<void> {
  const unique = `${randomBytes(8).toString('hex')}.tmp`
  const temporary = temporaryFolder === undefined ? `${path}.${unique}` : join(temporaryFolder, unique)
  let fd: number | undefined
  let created = false
  try {
    fd = await port.open(temporary, NEW_FILE, 0o600)
    created = true
    await writeFully(port, fd, bytes, 0)
    if (durable) await port.fsync(fd)
    if (like !== undefined) await port.fchown(fd, like.uid, like.gid).catch(unlessForbidden)
    await port.fchmod(fd, like === undefined ? 0o600 : like.mode & 0o777)
    const open = fd
    fd = undefined
    await port.close(open)
    await port.rename(temporary, path)
    created = false
    if (durable) await syncFolder(port, dirname(path))
  } catch (error) {
    if (fd !== undefined) await port.close(fd).catch(() => undefined)
    if (created) await port.unlink(temporary).catch(() => undefined)
    throw error
  }
}

function unlessForbidden(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPERM') throw error
}
