import { errnoOf } from '@svc/internal-errors'
import type { FileStat } from '@svc/internal-files'
import type { Sha256Digest } from '@svc/ref'
import { DiskBlobReader, notRegular, openBlobFile, quickReads } from './blob-reader.ts'
import { ioError } from './errors.ts'
import type { BlobInfo, BlobReader, RemoveOptions } from './store.ts'
import type { StoreContext } from './store-context.ts'

/** Looks up, opens and removes the blobs of a disk store. */
export class DiskBlobs {
  readonly #context: StoreContext

  constructor(context: StoreContext) {
    this.#context = context
  }

  async stat(digest: Sha256Digest): Promise<BlobInfo | undefined> {
    this.#context.throwIfClosed()
    const { port, layout, digestLocks, notDurable, leases, guard } = this.#context
    const path = layout.blob(digest)
    leases.touch(digest)
    const found = (stat: FileStat): BlobInfo => {
      if (!stat.isFile()) throw notRegular(digest, path)
      return { digest, sizeBytes: stat.size }
    }
    try {
      // nobody is making the name, nor can anybody begin within this turn: there is nothing to wait for.
      const quick = await quickReads.run(
        () => {
          if (!digestLocks.isFree(digest)) return undefined
          return notDurable.has(digest) ? ('hidden' as const) : port.lstatSync(path)
        },
        async () => undefined
      )
      if (quick === 'hidden') return undefined
      if (quick !== undefined) return found(quick)
      // a name that is being made is removed again if its folder cannot be synced: wait until it is durable or gone.
      return await digestLocks.run(digest, undefined, async () => {
        if (notDurable.has(digest)) return undefined
        return found(await port.lstat(path))
      })
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT') throw ioError(error, 'stat blob', path)
      guard.requireFolderFor(path)
      return undefined
    }
  }

  async open(digest: Sha256Digest): Promise<BlobReader> {
    this.#context.throwIfClosed()
    const { port, layout, leases, guard } = this.#context
    const path = layout.blob(digest)
    leases.touch(digest)
    const lease = leases.acquire([digest])
    try {
      return new DiskBlobReader(port, digest, await openBlobFile(port, digest, path), lease)
    } catch (error) {
      lease.release()
      if (errnoOf(error) === 'E_NOT_FOUND') guard.requireFolderFor(path)
      throw error
    }
  }

  async remove(digest: Sha256Digest, { may }: RemoveOptions = {}): Promise<BlobInfo | undefined> {
    this.#context.throwIfClosed()
    const { port, layout, digestLocks, notDurable, leases, guard, clock } = this.#context
    const path = layout.blob(digest)
    try {
      return await digestLocks.run(digest, undefined, async () => {
        await guard.requireOwner()
        const stat = await port.lstat(path)
        if (!stat.isFile()) throw notRegular(digest, path)
        const blob = { digest, sizeBytes: stat.size }
        if (leases.covers(digest)) return undefined
        if (may?.({ ...blob, ageMs: Math.max(0, clock.now() - stat.mtimeMs) }) === false) return undefined
        await port.unlink(path)
        notDurable.delete(digest)
        return blob
      })
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT') throw ioError(error, 'remove blob', path)
      guard.requireFolderFor(path)
      return undefined
    }
  }
}
