import { readSync } from 'node:fs'
import { type ByteSource, CasError, type FileSource } from '@svc/cas'

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
      const { done, value } = await orAbort(iterator.next(), signal)
      if (done === true) return new Uint8Array(Buffer.concat(chunks))
      sizeBytes += value.length
      if (maxBytes !== undefined && sizeBytes > maxBytes)
        throw new CasError('E_SIZE_MISMATCH', `more bytes than the ${maxBytes} that were announced`)
      // the source may use its buffer again
      chunks.push(value.slice())
    }
  } catch (error) {
    // Its clean-up may take time; nobody waits for it.
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

function orAbort<T>(step: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(new CasError('E_ABORTED', 'the operation was aborted by its caller'))
    if (signal.aborted) return onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    step.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}
