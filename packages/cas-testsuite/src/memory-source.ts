import { readSync } from 'node:fs'
import { type ByteSource, CasError, type FileSource } from '@svc/cas'
import { orAbort } from '@svc/internal-concurrency'
import { abortError } from './memory-hash.ts'

const CHUNK_BYTES = 256 << 10

/**
 * Reads a whole source into memory. @throws CasError `E_SIZE_MISMATCH`, `E_ABORTED`; errors of the source as they are
 */
export async function readSource(
  source: ByteSource,
  maxBytes: number | undefined,
  signal: AbortSignal
): Promise<Uint8Array> {
  const iterator = ('fd' in source ? fileChunks(source) : source)[Symbol.asyncIterator]()
  const chunks: Uint8Array[] = []
  let sizeBytes = 0
  try {
    for (;;) {
      const { done, value } = await orAbort(iterator.next(), signal, abortError)
      if (done === true) return new Uint8Array(Buffer.concat(chunks))
      sizeBytes += value.length
      if (maxBytes !== undefined && sizeBytes > maxBytes)
        throw new CasError('E_SIZE_MISMATCH', `the source has more than the announced ${maxBytes} bytes`)
      // the source may use its buffer again
      chunks.push(value.slice())
    }
  } catch (error) {
    // its clean-up may take time; nobody waits for it.
    void iterator.return?.().catch(() => undefined)
    throw error
  }
}

async function* fileChunks({ fd }: FileSource): AsyncGenerator<Uint8Array> {
  for (let offset = 0; ; ) {
    const chunk = new Uint8Array(CHUNK_BYTES)
    const count = readSync(fd, chunk, 0, chunk.length, offset)
    if (count === 0) return
    offset += count
    yield chunk.subarray(0, count)
  }
}
