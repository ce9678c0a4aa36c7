import { constants } from 'node:fs'
import { errnoOf } from '@svc/internal-errors'
import { type FilePort, QuickReads, readUpTo, readUpToSync } from '@svc/internal-files'
import type { Sha256Digest } from '@svc/ref'
import { CasError, closedError, ioError } from './errors.ts'
import type { BlobReader, Lease } from './store.ts'

/** `O_NONBLOCK`: opening a FIFO must not hang. `O_NOFOLLOW`: a symbolic link must be seen as one. */
export const OPEN_BLOB = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
const CHUNK_BYTES = 256 << 10
/** Longer reads always go through the thread pool. */
const QUICK_BYTES = 128 << 10

export const quickReads = new QuickReads()

export const notFound = (digest: Sha256Digest): CasError =>
  new CasError('E_NOT_FOUND', `the store has no blob ${digest}`, { digest })

export const notRegular = (digest: Sha256Digest, path: string): CasError =>
  new CasError('E_CORRUPT', `${path} is not a regular file: move it away, then ingest the blob again`, { digest, path })

/** @throws CasError `E_RANGE` */
export function checkRange(start: number, end: number, sizeBytes: number): void {
  if (Number.isSafeInteger(start) && Number.isSafeInteger(end) && start >= 0 && start <= end && end <= sizeBytes) return
  throw new CasError('E_RANGE', `[${start}, ${end}) does not lie within the ${sizeBytes} bytes`, { sizeBytes })
}

/** A blob's descriptor for reading. @throws CasError `E_NOT_FOUND`, `E_CORRUPT`, `E_IO` */
export async function openBlobFile(
  port: FilePort,
  digest: Sha256Digest,
  path: string
): Promise<{ readonly fd: number; readonly sizeBytes: number; readonly dev: number; readonly ino: number }> {
  let fd: number
  try {
    fd = await quickReads.run(
      () => port.openSync(path, OPEN_BLOB),
      () => port.open(path, OPEN_BLOB)
    )
  } catch (error) {
    const errno = errnoOf(error)
    if (errno === 'ENOENT') throw notFound(digest)
    if (errno === 'ELOOP' || errno === 'ENXIO') throw notRegular(digest, path)
    throw ioError(error, 'open blob', path)
  }
  try {
    // synchronous: the open has brought the inode into memory
    const stat = port.fstatSync(fd)
    if (!stat.isFile()) throw notRegular(digest, path)
    return { fd, sizeBytes: stat.size, dev: stat.dev, ino: stat.ino }
  } catch (error) {
    await port.close(fd).catch(() => undefined)
    throw ioError(error, 'open blob', path)
  }
}

/** Whether there is a regular file of this size. An absent one is no error: most blobs of an import are new. */
export function isWhole(port: FilePort, path: string, sizeBytes: number): boolean {
  const found = port.tryLstatSync(path)
  return found?.isFile() === true && found.size === sizeBytes
}

/** The size of an open blob's file now. @throws CasError `E_IO` */
export function sizeOf(port: FilePort, fd: number, path: string): number {
  try {
    return port.fstatSync(fd).size
  } catch (error) {
    throw ioError(error, 'read blob', path)
  }
}

/** Reads from an open descriptor, which is closed once, when no read is under way. Holds a lease of its blob until then. */
export class DiskBlobReader implements BlobReader {
  readonly digest: Sha256Digest
  readonly sizeBytes: number
  readonly #port: FilePort
  readonly #fd: number
  readonly #reads = new Set<Promise<unknown>>()
  readonly #lease: Lease
  #closed: Promise<void> | undefined

  constructor(
    port: FilePort,
    digest: Sha256Digest,
    { fd, sizeBytes }: { readonly fd: number; readonly sizeBytes: number },
    lease: Lease
  ) {
    this.digest = digest
    this.sizeBytes = sizeBytes
    this.#port = port
    this.#fd = fd
    this.#lease = lease
  }

  get fd(): number {
    if (this.#closed !== undefined) throw closedError('the reader')
    return this.#fd
  }

  async read(target: Uint8Array, offset: number): Promise<number> {
    if (this.#closed !== undefined) throw closedError('the reader')
    checkRange(offset, offset, this.sizeBytes)
    const reading = this.#readFully(target.subarray(0, this.sizeBytes - offset), offset)
    this.#reads.add(reading)
    try {
      return await reading
    } finally {
      this.#reads.delete(reading)
    }
  }

  async #readFully(target: Uint8Array, offset: number): Promise<number> {
    let found: Uint8Array
    try {
      const pooled = (): Promise<Uint8Array> => readUpTo(this.#port, this.#fd, target, offset)
      found =
        target.length > QUICK_BYTES
          ? await pooled()
          : await quickReads.run(() => readUpToSync(this.#port, this.#fd, target, offset), pooled)
    } catch (error) {
      throw ioError(error, 'read blob')
    }
    if (found.length === target.length) return found.length
    throw new CasError('E_CORRUPT', `the file of ${this.digest} ends before its ${this.sizeBytes} bytes`, {
      digest: this.digest
    })
  }

  async *stream(range?: { readonly start: number; readonly end: number }): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      const { start, end } = range ?? { start: 0, end: this.sizeBytes }
      checkRange(start, end, this.sizeBytes)
      const chunk = async (offset: number): Promise<Uint8Array> => {
        const bytes = new Uint8Array(Buffer.allocUnsafeSlow(Math.min(CHUNK_BYTES, end - offset)).buffer)
        await this.read(bytes, offset)
        return bytes
      }
      let next = start < end ? chunk(start) : undefined
      for (let offset = start; next !== undefined; ) {
        const bytes = await next
        offset += bytes.length
        // reads ahead while the consumer works on this chunk.
        next = offset < end ? chunk(offset) : undefined
        next?.catch(() => undefined)
        yield bytes
      }
    } finally {
      await this.close()
    }
  }

  close(): Promise<void> {
    this.#closed ??= Promise.allSettled(this.#reads)
      .then(() =>
        // if the last name of a large file is gone, closing frees its blocks, which takes time
        this.sizeBytes > QUICK_BYTES ? this.#port.close(this.#fd) : this.#port.closeSync(this.#fd)
      )
      .catch((error) => {
        throw ioError(error, 'close blob')
      })
      // a descriptor whose close fails is closed nevertheless
      .finally(() => this.#lease.release())
    return this.#closed
  }
}
