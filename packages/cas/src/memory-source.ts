import { nodeFilePort } from '@svc/internal-files'
import { Pull } from './pull.ts'
import type { ByteSource } from './store.ts'

const CHUNK_BYTES = 256 << 10

/**
 * Reads a whole source into memory. @throws CasError `E_SIZE_MISMATCH`, `E_IO`, `E_ABORTED`; errors of the source as
 * they are
 */
export function readSource(
  source: ByteSource,
  sizeBytes: number | undefined,
  signal: AbortSignal
): Promise<Uint8Array> {
  return 'fd' in source ? readDescriptor(source.fd, sizeBytes, signal) : readStream(source, sizeBytes, signal)
}

async function readDescriptor(fd: number, sizeBytes: number | undefined, signal: AbortSignal): Promise<Uint8Array> {
  async function* chunks(): AsyncGenerator<Uint8Array> {
    for (let offset = 0; ; ) {
      const chunk = new Uint8Array(CHUNK_BYTES)
      const count = await nodeFilePort.read(fd, chunk, 0, chunk.length, offset)
      if (count === 0) return
      offset += count
      yield chunk.subarray(0, count)
    }
  }
  return readStream(chunks(), sizeBytes, signal)
}

async function readStream(
  source: AsyncIterable<Uint8Array>,
  sizeBytes: number | undefined,
  signal: AbortSignal
): Promise<Uint8Array> {
  const pull = new Pull(source, sizeBytes, signal)
  try {
    return await pull.upTo(Number.MAX_SAFE_INTEGER)
  } catch (error) {
    pull.breakOff()
    throw error
  }
}
