import type { FileHandle } from 'node:fs/promises'

const CHUNK_BYTES = 1 << 20

/** Fills `target` from `position`. @returns the number of bytes, fewer if the file ends earlier */
export async function readFully(handle: FileHandle, target: Uint8Array, position: number): Promise<number> {
  let done = 0
  while (done < target.length) {
    const { bytesRead } = await handle.read(target, done, target.length - done, position + done)
    if (bytesRead === 0) break
    done += bytesRead
  }
  return done
}

/**
 * The bytes `[start, end)` of an open file, in chunks of at most 1 MiB; fewer if the file ends earlier. The buffer is reused: a chunk is
 * valid until the next one is requested.
 */
export async function* readChunks(handle: FileHandle, start = 0, end = Infinity): AsyncGenerator<Buffer, void, void> {
  const buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, Math.max(1, end - start)))
  for (let at = start; at < end; ) {
    const { bytesRead } = await handle.read(buffer, 0, Math.min(buffer.length, end - at), at)
    if (bytesRead === 0) return
    yield buffer.subarray(0, bytesRead)
    at += bytesRead
  }
}

/** Writes all of `bytes` at `position`. */
export async function writeAt(handle: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < bytes.length; )
    done += (await handle.write(bytes, done, bytes.length - done, position + done)).bytesWritten
}
