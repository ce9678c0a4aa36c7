import { createHash } from 'node:crypto'
import { open } from 'node:fs/promises'

const CHUNK_BYTES = 256 << 10

/**
 * The hash of `prefix` and a file's bytes, read piece by piece: whoever asks for a file decides neither how much memory that takes nor how
 * long the others wait. @throws errors of the file system
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
