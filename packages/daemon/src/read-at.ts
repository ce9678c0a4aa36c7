import { read } from 'node:fs'
import { promisify } from 'node:util'
import type { ReadAt } from '@svc/classify'

const readSome = promisify(read)

/** Random access to an open file of `sizeBytes`; short only at its end. */
export const readAtOf =
  (fd: number, sizeBytes: number): ReadAt =>
  async (offset, lengthBytes) => {
    const bytes = new Uint8Array(Math.max(0, Math.min(lengthBytes, sizeBytes - offset)))
    let filled = 0
    while (filled < bytes.length) {
      const { bytesRead } = await readSome(fd, bytes, filled, bytes.length - filled, offset + filled)
      if (bytesRead === 0) break
      filled += bytesRead
    }
    return bytes.subarray(0, filled)
  }
