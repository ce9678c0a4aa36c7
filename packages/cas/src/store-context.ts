import type { Clock } from '@svc/internal-clock'
import { Gate, KeyedLock } from '@svc/internal-concurrency'
import type { FilePort } from '@svc/internal-files'
import type { Sha256Digest } from '@svc/ref'
import { abortError, CasError, closedError, ioError } from './errors.ts'
import type { HashThreads } from './hash-threads.ts'
import type { RootGuard } from './identity.ts'
import type { Layout } from './layout.ts'
import { Leases } from './leases.ts'

/** The state that the modules of one open disk store share. */
export class StoreContext {
  readonly layout: Layout
  readonly port: FilePort
  readonly threads: HashThreads
  readonly guard: RootGuard
  readonly clock: Clock
  /** New files are written early on the root's file system: see `early-write.ts`. */
  readonly delaysBlocks: boolean
  readonly leases = new Leases()
  /** Held while a blob's name is created or moved to quarantine, and while `stat` looks it up. */
  readonly digestLocks = new KeyedLock<string>(abortError)
  /**
   * Blobs whose name exists but may not survive a power loss, because neither syncing its folder nor removing the name
   * succeeded. `stat` reports them as absent, and the next ingest of the same bytes replaces them.
   */
  readonly notDurable = new Set<Sha256Digest>()
  readonly #datasyncs = new Gate(1)
  readonly #closing = new AbortController()
  readonly #underWay = new Set<Promise<unknown>>()

  constructor(
    layout: Layout,
    port: FilePort,
    threads: HashThreads,
    guard: RootGuard,
    clock: Clock,
    delaysBlocks: boolean
  ) {
    this.clock = clock
    this.delaysBlocks = delaysBlocks
    this.guard = guard
    this.layout = layout
    this.port = port
    this.threads = threads
  }

  /**
   * Runs an operation that `close` aborts and waits for. Its signal combines the caller's with that of `close`.
   * @throws CasError `E_STORE_GONE` before it begins, and in place of an I/O error that this caused
   */
  async run<T>(signal: AbortSignal | undefined, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    this.throwIfClosed()
    const either = signal === undefined ? this.#closing.signal : AbortSignal.any([signal, this.#closing.signal])
    if (either.aborted) throw abortError(signal)
    this.guard.requireRoot()
    const running = work(either)
    this.#underWay.add(running)
    try {
      return await running
    } catch (error) {
      if (error instanceof CasError && error.code === 'E_IO') this.guard.requireRoot()
      const aborted = error instanceof CasError && (error.code === 'E_ABORTED' || error.code === 'E_CLOSED')
      if (!aborted) throw error
      if (signal?.aborted) throw abortError(signal)
      throw this.#closing.signal.aborted ? closedError('the store') : error
    } finally {
      this.#underWay.delete(running)
    }
  }

  throwIfClosed(): void {
    if (this.#closing.signal.aborted) throw closedError('the store')
  }

  async abortAll(): Promise<void> {
    this.#closing.abort()
    while (this.#underWay.size > 0) await Promise.allSettled(this.#underWay)
  }

  /**
   * Syncs a part file ahead of its commit. One at a time, so that a slow disk holds one thread of the process's I/O pool.
   * @param onTurn called when its turn comes
   * @throws CasError `E_IO`, `E_NO_SPACE`
   */
  datasync(fd: number, part: string, onTurn?: () => void): Promise<void> {
    return this.#datasyncs.run(undefined, async () => {
      onTurn?.()
      try {
        await this.port.fdatasync(fd)
      } catch (error) {
        throw ioError(error, 'sync part', part)
      }
    })
  }

  /** On the store's file system, for this user. @throws CasError `E_IO` */
  async freeBytes(): Promise<number> {
    const { root } = this.layout
    try {
      const { bavail, bsize } = await this.port.statfs(root)
      return bavail * bsize
    } catch (error) {
      throw ioError(error, 'ask for free space', root)
    }
  }

  /** Closes and deletes a part file; if that fails, the sweep at the next start deletes it. */
  async discardPart(fd: number | undefined, part: string): Promise<void> {
    if (fd !== undefined) await this.port.close(fd).catch(() => undefined)
    await this.port.unlink(part).catch(() => undefined)
  }
}

/** @throws CasError `E_SIZE_MISMATCH`, `E_DIGEST_MISMATCH` */
export function checkExpected(
  result: { readonly digest: Sha256Digest; readonly sizeBytes: number },
  expected: { readonly digest?: Sha256Digest | undefined; readonly sizeBytes?: number | undefined }
): void {
  const { digest, sizeBytes } = result
  if (expected.sizeBytes !== undefined && sizeBytes !== expected.sizeBytes) {
    throw new CasError(
      'E_SIZE_MISMATCH',
      `the source has ${sizeBytes} bytes instead of the announced ${expected.sizeBytes}`,
      { sizeBytes, expectedSizeBytes: expected.sizeBytes }
    )
  }
  if (expected.digest !== undefined && digest !== expected.digest) {
    throw new CasError('E_DIGEST_MISMATCH', `the bytes have the digest ${digest}; expected ${expected.digest}`, {
      digest,
      expectedDigest: expected.digest
    })
  }
}
