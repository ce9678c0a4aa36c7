import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { dirname } from 'node:path'
import { ioError } from './errors.ts'
import { type FilePort, syncFolder, writeFully } from './file-port.ts'

/** How {@link replaceFile} names its temporary files: a sweep may delete what matches and is not in use. */
export const TEMPORARY_FILE = /\.[0-9a-f]{16}\.tmp$/

/**
 * Replaces a small file atomically and durably: temporary file beside it → fsync → 0600 → rename → fsync of the folder
 * (spec disk.6). After a crash the old or the new bytes are there, never a mixture. The folder must exist.
 * On any failure the old file stands and the temporary one is gone; a failed fsync is never retried.
 * @throws CasError `E_NO_SPACE`, `E_IO`.
 */
export async function replaceFile(port: FilePort, path: string, bytes: Uint8Array): Promise<void> {
  const temporary = `${path}.${randomBytes(8).toString('hex')}.tmp`
  let fd: number | undefined
  let created = false
  try {
    fd = await port.open(
      temporary,
      constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW,
      0o600
    )
    created = true
    await writeFully(port, fd, bytes, 0)
    await port.fsync(fd)
    await port.fchmod(fd, 0o600)
    const open = fd
    fd = undefined
    await port.close(open)
    await port.rename(temporary, path)
    created = false
    await syncFolder(port, dirname(path))
  } catch (error) {
    if (fd !== undefined) await port.close(fd).catch(() => undefined)
    if (created) await port.unlink(temporary).catch(() => undefined)
    throw ioError(error, 'replace file', path)
  }
}
