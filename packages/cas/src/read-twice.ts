import { dropFromCache } from '@svc/internal-files'
import type { Sha256Digest } from '@svc/ref'
import { CasError } from './errors.ts'

/** What one pass over a blob's file gave. */
export interface BlobPass {
  readonly digest: Sha256Digest
  /** Bytes that were read. */
  readonly sizeBytes: number
  /** Size of the file after the last read. */
  readonly fileBytes: number
}

/**
 * The only judge of what may go to quarantine (spec disk.24): a blob is corrupt when two passes over its file, the
 * second one past the system's cache where that can be had, read it to its end without an error and agree on another
 * digest. Anything else is an error of the disk, and the blob stays.
 * @param pass opens the file anew and reads all of it
 * @returns the last pass, which has the blob's digest unless the file is corrupt
 * @throws CasError `E_IO` for a pass that ended early, and for two that do not agree; what `pass` throws
 */
export async function readTwice<Pass extends BlobPass>(
  digest: Sha256Digest,
  path: string,
  pass: () => Promise<Pass>
): Promise<Pass> {
  const first = await pass()
  requireWhole(first, path)
  if (first.digest === digest) return first
  await dropFromCache(path)
  const second = await pass()
  requireWhole(second, path)
  if (second.digest === digest || second.digest === first.digest) return second
  throw unreliable(path, 'two reads gave different bytes')
}

function requireWhole({ sizeBytes, fileBytes }: BlobPass, path: string): void {
  if (sizeBytes !== fileBytes) throw unreliable(path, `a read ended after ${sizeBytes} of ${fileBytes} bytes`)
}

const unreliable = (path: string, what: string): CasError =>
  new CasError('E_IO', `read blob ${path}: ${what}; the blob stays where it is`, { operation: 'read blob', path })
