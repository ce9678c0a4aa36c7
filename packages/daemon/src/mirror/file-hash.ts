import { createHash } from 'node:crypto'
import { open } from 'node:fs/promises'

const CHUNK_BYTES = 256 << 10

/**
 * Hashes `prefix` followed by a file's bytes, chunk by chunk: a client's choice of file must not determine how much
 * memory that takes, or how long others wait. @throws errors of the file system
 */
export async function hashFile(path: string, algorithm: 'sha1' | 'sha256', prefix = ''): Promise<Buffer> {
  const hash = createHash(algorithm).update(prefix)
  const handle = await open(path)
  try {
    const { size } = await handle.stat()
    const buffer = Buffer.allocUnsafe(Math.max(1, Math.min(size, CHUNK_BYTES)))
    for (;;) {
      const { bytesRead } = await handle.read(buffer, 0, buffer.length)
      if (bytesRead === 0) return hash.digest()
      hash.update(buffer.subarray(0, bytesRead))
    }
  } finally {
    await handle.close()
  }
}
