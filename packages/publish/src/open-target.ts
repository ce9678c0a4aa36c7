import { FolderTarget } from './folder.ts'
import type { Place } from './place.ts'
import type { S3Options } from './s3/bucket.ts'
import type { Target } from './target.ts'

/** How a target is opened: the settings of S3, and of folders. */
export interface OpenOptions extends S3Options {
  /** A folder is neither made nor locked, and need not be writable. */
  readonly readOnly?: boolean
  /** New folders are 0700, files 0600. */
  readonly isPrivate?: boolean
}

/** Opens a destination. Loads the S3 client only for buckets: it is large. @throws PublishError */
export async function openTarget(place: Place, options: OpenOptions = {}): Promise<Target> {
  const { readOnly = false, isPrivate = false } = options
  if (place.kind === 'folder')
    return readOnly ? FolderTarget.openForReading(place.path) : FolderTarget.open(place.path, isPrivate)
  const { S3Target } = await import('./s3/s3-target.ts')
  return S3Target.open(place, options)
}
