import { realpath } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { type Clock, systemClock } from '@svc/internal-clock'
import { errnoOf } from '@svc/internal-errors'
import {
  type FilePort,
  type FilePortModule,
  holdOffOnNetworkFileSystem,
  loadFilePort,
  makeFolders
} from '@svc/internal-files'
import { BlobAudit } from './blob-audit.ts'
import { DiskBlobs } from './disk-blobs.ts'
import { DiskPartials } from './disk-partials.ts'
import { delaysBlocks } from './early-write.ts'
import { ioError } from './errors.ts'
import { HashThreads } from './hash-threads.ts'
import { prepareIdentity, RootGuard, requireStoreId } from './identity.ts'
import { Ingestor } from './ingest.ts'
import { layoutOf, prepareLayout, prepareRoot } from './layout.ts'
import { lockRoot } from './root-lock.ts'
import type { DiskBlobStore } from './store.ts'
import { StoreContext } from './store-context.ts'

/** Options of a disk store; only `root` is required. */
export interface DiskStoreOptions {
  /** The store's folder; created with mode 0700 if absent. */
  readonly root: string
  /** The id of the expected store; no other store is opened, and none is created. */
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
  try {
    const isNew = await prepareLayout(port, layout, lock.afterCrash)
    const id = await prepareIdentity(port, layout, { folders, newId })
    const guard = new RootGuard(layout, id, () => lock.isInPlace(), folders)
    const threads = new HashThreads(root, options.filePort, options.hashThreads)
    const context = new StoreContext(layout, port, threads, guard, clock, await delaysBlocks(port, root))
    const { leases, notDurable } = context
    const partials = new DiskPartials(context, options.checkpointMs ?? TWO_SECONDS_MS)
    partials.sweep({
      maxAgeMs: options.maxPartialAgeMs ?? TWO_WEEKS_MS,
      lastUsedMs: lock.lastUsedMs
    })
    const blobs = new DiskBlobs(context)
    const ingestor = new Ingestor(context)
    const audit = new BlobAudit(context)
    const endHoldOff = await holdOffOnNetworkFileSystem(port, root)
    const close = async (): Promise<void> => {
      await context.abortAll()
      const failure = await partials.releaseAll()
      await threads.close()
      endHoldOff()
      // a name whose folder could not be synced is made durable, or is gone, after the start that follows a crash
      lock.release(notDurable.size === 0)
      if (failure !== undefined) throw failure
    }
    let closed: Promise<void> | undefined
    return {
      root,
      id,
      isNew,
      lockKind: lock.kind,
      requireRoot: () => guard.requireRoot(),
      check: () => guard.check(),
      blobPath: layout.blob,
      freeBytes: () => context.freeBytes(),
      stat: (digest) => blobs.stat(digest),
      open: (digest) => blobs.open(digest),
      remove: (digest, removal) => blobs.remove(digest, removal),
      lease: (digests) => leases.acquire(digests),
      isLeased: (digest) => leases.covers(digest),
      ingest: (source, expected) => ingestor.ingest(source, expected),
      ingestNamed: (files, expected) => ingestor.ingestNamed(files, expected),
      sharesBlocks: ({ fd }) => ingestor.sharesBlocks(fd),
      partial: (key, wanted) => partials.open(key, wanted),
      partialStatus: (key) => partials.status(key),
      listPartials: () => partials.list(),
      abortPartial: (key) => partials.abort(key),
      list: () => audit.list(),
      verify: (digest, wanted) => audit.verify(digest, wanted),
      scrub: (wanted) => audit.scrub(wanted),
      close: () => (closed ??= close())
    }
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
