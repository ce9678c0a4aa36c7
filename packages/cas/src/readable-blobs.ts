import { lstat } from 'node:fs/promises'
import { errnoOf } from '@svc/internal-errors'
import { nodeFilePort } from '@svc/internal-files'
import { DiskBlobReader, notRegular, openBlobFile } from './blob-reader.ts'
import { ioError } from './errors.ts'
import { layoutOf } from './layout.ts'
import type { DiskBlobStore } from './store.ts'

const NO_LEASE = { keep: () => undefined, release: () => undefined }

/**
 * Looks up the blobs of a store that another process may own: takes no lock, and writes nothing. A blob may be removed at
 * any time, also while it is open, which then can be read to its end. `stat` and `open` @throws CasError `E_CORRUPT`,
 * `E_IO`, and `open` `E_NOT_FOUND`
 */
export function readableBlobs(root: string): Pick<DiskBlobStore, 'root' | 'blobPath' | 'stat' | 'open'> {
  const { blob } = layoutOf(root)
  return {
    root,
    blobPath: blob,
    open: async (digest) =>
      new DiskBlobReader(nodeFilePort, digest, await openBlobFile(nodeFilePort, digest, blob(digest)), NO_LEASE),
    async stat(digest) {
      const path = blob(digest)
      try {
        const stat = await lstat(path)
        if (!stat.isFile()) throw notRegular(digest, path)
        return { digest, sizeBytes: stat.size }
      } catch (error) {
        if (errnoOf(error) !== 'ENOENT') throw ioError(error, 'stat blob', path)
        return undefined
      }
    }
  }
}
