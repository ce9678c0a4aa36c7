import { realpath } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { type Clock, systemClock } from '@svc/internal-clock'
import { errnoOf } from '@svc/internal-errors'
import {
  type FilePort,
  type FilePortModule,
  type FileStat,
  holdOffOnNetworkFileSystem,
  loadFilePort,
  makeFolders
} from '@svc/internal-files'
import type { Sha256Digest } from '@svc/ref'
import { BlobAudit } from './blob-audit.ts'
import { DiskBlobReader, notRegular, openBlobFile, quickReads } from './blob-reader.ts'
import { DiskPartials } from './disk-partials.ts'
import { delaysBlocks } from './early-write.ts'
import { type CasError, ioError } from './errors.ts'
import { HashThreads } from './hash-threads.ts'
import { prepareIdentity, RootGuard, requireStoreId } from './identity.ts'
import { Ingestor } from './ingest.ts'
import { layoutOf, prepareLayout, prepareRoot } from './layout.ts'
import { type LockKind, lockRoot, type RootLock } from './root-lock.ts'
import type {
  BlobInfo,
  BlobReader,
  BlobStore,
  ByteSource,
  DiskBlobStore,
  FileSource,
  IngestNamedOptions,
  IngestOptions,
  IngestResult,
  Lease,
  NamedFileSource,
  PartialBlob,
  PartialKey,
  PartialOptions,
  PartialStatus,
  RemoveOptions,
  ScrubReport,
  VerifyOptions,
  VerifyResult
} from './store.ts'
import { StoreContext } from './store-context.ts'

/** Options of a disk store; only `root` is required. */
export interface DiskStoreOptions {
  /** The store's folder; created with mode 0700 if absent. */
  readonly root: string
  /** The id of the store that must be there; nothing is made for another one, or where there is none. */
  readonly expectedId?: string | undefined
  /** The id for a store that has none; default: a random UUID. */
  readonly newId?: string | undefined
  /** Further folders, relative to the root: made with a new store, and required from then on. */
  readonly folders?: readonly string[] | undefined
  /** Threads that read and hash; default: one per core, at most 4. */
  readonly hashThreads?: number
  /** Partial blobs untouched for this long are deleted when the store opens; default 14 days. */
  readonly maxPartialAgeMs?: number
  /** Longest time between a write to a partial blob and the checkpoint that covers it; default 2 seconds. */
  readonly checkpointMs?: number
  /** Replaces the operating system's file functions, in this thread and in the workers. */
  readonly filePort?: FilePortModule
  /** Replaces the system's clock, in this thread. */
  readonly clock?: Clock
}

const TWO_WEEKS_MS = 14 * 24 * 3600 * 1000
const TWO_SECONDS_MS = 2000

/**
 * Opens the store in a folder, which is created if absent (spec disk.1, disk.9), and cleans up after an earlier crash.
 * A root has one owner at a time; `close` releases it.
 * @throws CasError `E_LOCKED` (another owner; `details.pid`), `E_UNSAFE_ROOT`, `E_FORMAT`, `E_OTHER_STORE`,
 *   `E_NO_SPACE`, `E_IO`.
 */
export async function openDiskStore(options: DiskStoreOptions): Promise<DiskBlobStore> {
  const port = await loadFilePort(options.filePort)
  const { folders = [], newId, expectedId, clock = systemClock } = options
  if (expectedId !== undefined) requireStoreId(port, resolve(options.root), expectedId)
  const root = await prepareFolder(port, resolve(options.root))
  const layout = layoutOf(root)
  const lock = await lockRoot(layout.lock)
  let threads: HashThreads | undefined
  try {
    const isNew = prepareLayout(port, layout, lock.afterCrash)
    const id = prepareIdentity(port, layout, { folders, newId })
    const guard = new RootGuard(layout, id, () => lock.isInPlace(), folders)
    threads = new HashThreads(root, options.filePort, options.hashThreads)
    const context = new StoreContext(layout, port, threads, guard, clock, await delaysBlocks(port, root))
    const ingestor = new Ingestor(context)
    const partials = new DiskPartials(context, options.checkpointMs ?? TWO_SECONDS_MS)
    partials.sweep({
      maxAgeMs: options.maxPartialAgeMs ?? TWO_WEEKS_MS,
      nowMs: clock.now(),
      lastUsedMs: lock.lastUsedMs
    })
    return new DiskStore({
      context,
      ingestor,
      partials,
      lock,
      id,
      isNew,
      endHoldOff: await holdOffOnNetworkFileSystem(port, root)
    })
  } catch (error) {
    lock.release()
    throw error
  }
}

async function prepareFolder(port: FilePort, path: string): Promise<string> {
  try {
    await makeFolders(dirname(path), 0o700, port)
    // The root itself may be a symbolic link, which is resolved once, here; below the root, links are never followed.
    const real = await realpath(path).catch((error: unknown) => {
      if (errnoOf(error) === 'ENOENT') return path
      throw error
    })
    prepareRoot(port, real)
    return await realpath(real)
  } catch (error) {
    throw ioError(error, 'prepare the root folder', path)
  }
}

/** @throws CasError `E_CORRUPT` for what is not a regular file */
function regularSize(stat: FileStat, digest: Sha256Digest, path: string): number {
  if (!stat.isFile()) throw notRegular(digest, path)
  return stat.size
}

interface DiskStoreParts {
  readonly context: StoreContext
  readonly ingestor: Ingestor
  readonly partials: DiskPartials
  readonly lock: RootLock
  readonly id: string
  readonly isNew: boolean
  readonly endHoldOff: () => void
}

class DiskStore implements DiskBlobStore {
  readonly root: string
  readonly id: string
  readonly isNew: boolean
  readonly lockKind: LockKind
  readonly #context: StoreContext
  readonly #ingestor: Ingestor
  readonly #partials: DiskPartials
  readonly #audit: BlobAudit
  readonly #lock: RootLock
  readonly #endHoldOff: () => void
  #closed: Promise<void> | undefined

  constructor({ context, ingestor, partials, lock, id, isNew, endHoldOff }: DiskStoreParts) {
    this.root = context.layout.root
    this.id = id
    this.isNew = isNew
    this.lockKind = lock.kind
    this.#context = context
    this.#ingestor = ingestor
    this.#partials = partials
    this.#audit = new BlobAudit(context)
    this.#lock = lock
    this.#endHoldOff = endHoldOff
  }

  requireRoot(): void {
    this.#context.guard.requireRoot()
  }

  check(): void {
    this.#context.guard.check()
  }

  blobPath(digest: Sha256Digest): string {
    return this.#context.layout.blob(digest)
  }

  async freeBytes(): Promise<number> {
    try {
      const { bavail, bsize } = await this.#context.port.statfs(this.root)
      return bavail * bsize
    } catch (error) {
      throw ioError(error, 'ask for free space', this.root)
    }
  }

  sharesBlocks({ fd }: FileSource): Promise<boolean> {
    return this.#ingestor.sharesBlocks(fd)
  }

  partialStatus(key: string): PartialStatus | undefined {
    return this.#partials.status(key)
  }

  listPartials(): readonly PartialStatus[] {
    return this.#partials.list()
  }

  abortPartial(key: string): Promise<void> {
    return this.#partials.abort(key)
  }

  async stat(digest: Sha256Digest): Promise<BlobInfo | undefined> {
    this.#context.throwIfClosed()
    const { port, digestLocks, notDurable, leases } = this.#context
    const path = this.blobPath(digest)
    leases.touch(digest)
    const found = (size: number): BlobInfo => ({ digest, sizeBytes: size })
    try {
      // nobody makes the name, and nobody can begin to within one turn: there is nothing to wait for
      const quick = await quickReads.run(
        () => {
          if (!digestLocks.isFree(digest)) return undefined
          return notDurable.has(digest) ? ('hidden' as const) : port.lstatSync(path)
        },
        async () => undefined
      )
      if (quick === 'hidden') return undefined
      if (quick !== undefined) return found(regularSize(quick, digest, path))
      // A name that is being made is removed again if its folder cannot be synced: wait until it is durable or gone.
      return await digestLocks.run(digest, undefined, async () => {
        if (notDurable.has(digest)) return undefined
        return found(regularSize(await port.lstat(path), digest, path))
      })
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT') throw ioError(error, 'stat blob', path)
      this.#context.guard.requireFolderFor(path)
      return undefined
    }
  }

  async open(digest: Sha256Digest): Promise<BlobReader> {
    this.#context.throwIfClosed()
    const { port, leases, guard } = this.#context
    const path = this.blobPath(digest)
    leases.touch(digest)
    const lease = leases.take([digest])
    try {
      return new DiskBlobReader(port, digest, await openBlobFile(port, digest, path), lease)
    } catch (error) {
      lease.release()
      if (errnoOf(error) === 'E_NOT_FOUND') guard.requireFolderFor(path)
      throw error
    }
  }

  ingest(source: ByteSource, options: IngestOptions = {}): Promise<IngestResult> {
    return this.#ingestor.ingest(source, options)
  }

  ingestNamed(
    files: readonly NamedFileSource[],
    options: IngestNamedOptions = {}
  ): Promise<readonly (IngestResult | CasError)[]> {
    return this.#ingestor.ingestNamed(files, options)
  }

  partial(key: PartialKey, options: PartialOptions = {}): Promise<PartialBlob> {
    return this.#partials.open(key, options)
  }

  async remove(digest: Sha256Digest, { may }: RemoveOptions = {}): Promise<BlobInfo | undefined> {
    this.#context.throwIfClosed()
    const { port, digestLocks, notDurable, clock } = this.#context
    const path = this.blobPath(digest)
    const release = await digestLocks.acquire(digest)
    try {
      this.#context.guard.requireRoot()
      const stat = await port.lstat(path)
      if (!stat.isFile()) throw notRegular(digest, path)
      const blob = { digest, sizeBytes: stat.size }
      if (this.isLeased(digest)) return undefined
      if (may?.({ ...blob, ageMs: Math.max(0, clock.now() - stat.mtimeMs) }) === false) return undefined
      await port.unlink(path)
      notDurable.delete(digest)
      return blob
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT') throw ioError(error, 'remove blob', path)
      this.#context.guard.requireFolderFor(path)
      return undefined
    } finally {
      release()
    }
  }

  lease(digests?: Iterable<Sha256Digest>): Lease {
    return this.#context.leases.take(digests)
  }

  isLeased(digest: Sha256Digest): boolean {
    return this.#context.leases.covers(digest)
  }

  list(): AsyncIterable<BlobInfo> {
    return this.#audit.list()
  }

  verify(digest: Sha256Digest, options: VerifyOptions = {}): Promise<VerifyResult> {
    this.#context.leases.touch(digest)
    return this.#audit.verify(digest, options)
  }

  scrub(options: Parameters<BlobStore['scrub']>[0] = {}): Promise<ScrubReport> {
    return this.#audit.scrub(options)
  }

  close(): Promise<void> {
    this.#closed ??= (async () => {
      await this.#context.abortAll()
      const failure = await this.#partials.releaseAll()
      await this.#context.threads.close()
      this.#endHoldOff()
      // a name whose folder could not be synced is made durable, or is gone, after the start that follows a crash
      this.#lock.release(this.#context.notDurable.size === 0)
      if (failure !== undefined) throw failure
    })()
    return this.#closed
  }
}
