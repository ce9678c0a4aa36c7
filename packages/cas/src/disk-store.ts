import { realpath } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { type Clock, systemClock } from '@svc/internal-clock'
import { errnoOf } from '@svc/internal-errors'
import {
  type FilePort,
  type FilePortModule,
  holdOffOnNetworkFileSystem,
  isOnNetworkFileSystem,
  loadFilePort,
  makeFolders
} from '@svc/internal-files'
import { BlobAudit } from './blob-audit.ts'
import { DiskBlobs } from './disk-blobs.ts'
import { DiskPartials } from './disk-partials.ts'
import { delaysBlocks } from './early-write.ts'
import { ioError } from './errors.ts'
import { HashThreads } from './hash-threads.ts'
import { prepareIdentity, RootGuard, type RootState, rootState } from './identity.ts'
import { Ingestor } from './ingest.ts'
import { type Layout, layoutOf, makeRoot, prepareLayout } from './layout.ts'
import { lockRoot, type RootLock } from './root-lock.ts'
import type { DiskBlobStore } from './store.ts'
import { StoreContext } from './store-context.ts'
import { StoreOwner } from './store-owner.ts'

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

/** The options that decide whether a root is refused. */
export type RootOptions = Pick<DiskStoreOptions, 'root' | 'folders' | 'expectedId' | 'filePort'>

const TWO_WEEKS_MS = 14 * 24 * 3600 * 1000
const TWO_SECONDS_MS = 2000

/**
 * Looks at a root as {@link openDiskStore} would, and changes nothing: neither the lock nor a mode.
 * @throws CasError `E_UNSAFE_ROOT`, `E_FORMAT`, `E_OTHER_STORE`, `E_IO`: opening it would be refused
 */
export async function lookAtRoot(options: RootOptions): Promise<RootState> {
  return look(await loadFilePort(options.filePort), options)
}

const look = async (port: FilePort, options: RootOptions): Promise<RootState> =>
  rootState(port, layoutOf(await realRoot(options.root)), options)

/**
 * Opens the store in a folder, which is created if absent (spec disk.1, disk.9), and cleans up after an earlier crash.
 * A folder that is refused stays as it was.
 * A root has one owner at a time; `close` releases it.
 * @throws CasError `E_LOCKED` (another owner; `details.pid`), `E_UNSAFE_ROOT`, `E_FORMAT`, `E_OTHER_STORE`,
 *   `E_NO_SPACE`, `E_IO`.
 */
export async function openDiskStore(options: DiskStoreOptions): Promise<DiskBlobStore> {
  const port = await loadFilePort(options.filePort)
  await look(port, options)
  const root = await madeRoot(port, options.root)
  const layout = layoutOf(root)
  const lock = await lockRoot(layout.lock)
  let owner: StoreOwner | undefined
  try {
    const { clock = systemClock } = options
    owner = await StoreOwner.claim(layout.owner, { clock, isShared: await isOnNetworkFileSystem(port, root) })
    return await openOwned({ port, layout, lock, owner, clock }, options)
  } catch (error) {
    await owner?.release()
    // what a crash before this start left behind is still unchecked
    lock.release(!lock.afterCrash)
    throw error
  }
}

/** A root that nobody else has. */
interface OwnedRoot {
  readonly port: FilePort
  readonly layout: Layout
  readonly lock: RootLock
  readonly owner: StoreOwner
  readonly clock: Clock
}

async function openOwned(owned: OwnedRoot, options: DiskStoreOptions): Promise<DiskBlobStore> {
  const { port, layout, lock, owner, clock } = owned
  const { root } = layout
  const { folders = [], newId } = options
  const isNew = await prepareLayout(port, layout, lock.afterCrash)
  const id = await prepareIdentity(port, layout, { folders, newId })
  const guard = new RootGuard(layout, id, lock, owner, folders)
  const threads = new HashThreads(root, options.filePort, options.hashThreads)
  const context = new StoreContext(layout, port, threads, guard, clock, await delaysBlocks(port, root))
  const partials = new DiskPartials(context, options.checkpointMs ?? TWO_SECONDS_MS)
  partials.sweep({ maxAgeMs: options.maxPartialAgeMs ?? TWO_WEEKS_MS, lastUsedMs: lock.lastUsedMs })
  const [blobs, ingestor, audit] = [new DiskBlobs(context), new Ingestor(context), new BlobAudit(context)]
  const endHoldOff = await holdOffOnNetworkFileSystem(port, root)
  let closed: Promise<void> | undefined
  return {
    root,
    id,
    isNew,
    lockKind: lock.kind,
    requireRoot: () => guard.requireRoot(),
    requireOwner: () => guard.requireOwner(),
    check: () => guard.check(),
    blobPath: layout.blob,
    freeBytes: () => context.freeBytes(),
    stat: (digest) => blobs.stat(digest),
    open: (digest) => blobs.open(digest),
    remove: (digest, removal) => blobs.remove(digest, removal),
    lease: (digests) => context.leases.acquire(digests),
    isLeased: (digest) => context.leases.covers(digest),
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
    close: () => (closed ??= close(owned, context, partials, endHoldOff))
  }
}

async function close(
  { lock, owner }: OwnedRoot,
  context: StoreContext,
  partials: DiskPartials,
  endHoldOff: () => void
): Promise<void> {
  await context.abortAll()
  const failure = await partials.releaseAll()
  await context.threads.close()
  endHoldOff()
  await owner.release()
  // a name whose folder could not be synced is made durable, or is gone, after the start that follows a crash
  lock.release(context.notDurable.size === 0)
  if (failure !== undefined) throw failure
}

/** The root itself may be a symbolic link, which is resolved once, here; below the root, links are never followed. */
async function realRoot(path: string): Promise<string> {
  const root = resolve(path)
  try {
    return await realpath(root)
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return root
    throw ioError(error, 'look at the root folder', root)
  }
}

async function madeRoot(port: FilePort, path: string): Promise<string> {
  try {
    await makeFolders(dirname(resolve(path)), 0o700, port)
    makeRoot(port, await realRoot(path))
    return await realpath(path)
  } catch (error) {
    throw ioError(error, 'prepare the root folder', path)
  }
}
