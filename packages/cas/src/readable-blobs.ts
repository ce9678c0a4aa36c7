import { lstat } from 'node:fs/promises'
import { errnoOf } from '@svc/internal-errors'
import { notRegular } from './blob-reader.ts'
import { ioError } from './errors.ts'
import { layoutOf } from './layout.ts'
import type { DiskBlobStore } from './store.ts'

/**
 * Looks up the blobs of a store that another process may own: takes no lock, and writes nothing. A blob may be removed at
 * any time. `stat` @throws CasError `E_CORRUPT`, `E_IO`
 */
export function readableBlobs(root: string): Pick<DiskBlobStore, 'root' | 'blobPath' | 'stat'> {
  const { blob } = layoutOf(root)
  return {
    root,
    blobPath: blob,
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
