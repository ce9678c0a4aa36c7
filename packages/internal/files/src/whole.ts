import { constants } from 'node:fs'
import type { FilePort } from './file-port.ts'

/** Writes all of `bytes` at `position`, going on after short writes. */
export function writeFullySync(port: FilePort, fd: number, bytes: Uint8Array, position: number): void {
  let done = 0
  while (done < bytes.length) {
    const count = port.writeSync(fd, bytes, done, bytes.length - done, position + done)
    if (count === 0) throw new Error('the file system took no bytes')
    done += count
  }
}

/** As {@link writeFullySync}, promised. */
export async function writeFully(port: FilePort, fd: number, bytes: Uint8Array, position: number): Promise<void> {
  let done = 0
  while (done < bytes.length) {
    const count = await port.write(fd, bytes, done, bytes.length - done, position + done)
    if (count === 0) throw new Error('the file system took no bytes')
    done += count
  }
}

/**
 * All bytes of a small file; undefined where there is none, or where its folder is none. A link is followed.
 * @throws system errors; RangeError for a file of more than `maxBytes`
 */
export async function readWhole(port: FilePort, path: string, maxBytes: number): Promise<Uint8Array | undefined> {
  let fd: number
  try {
    // Not blocking, so that a pipe under that name cannot hang the open.
    fd = await port.open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw error
  }
  try {
    const { size } = await port.fstat(fd)
    if (size > maxBytes) throw new RangeError(`${path} has ${size} bytes, at most ${maxBytes} are read`)
    const bytes = new Uint8Array(size)
    let done = 0
    while (done < size) {
      const count = await port.read(fd, bytes, done, size - done, done)
      if (count === 0) break
      done += count
    }
    return bytes.subarray(0, done)
  } finally {
    await port.close(fd)
  }
}
