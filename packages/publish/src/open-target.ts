import { FolderTarget } from './folder.ts'
import type { Place } from './place.ts'
import type { S3Options } from './s3/options.ts'
import type { Target } from './target.ts'

/** Opens a destination for writing. Loads the S3 client only for buckets: it is large. @throws PublishError */
export async function openTarget(place: Place, options: S3Options = {}): Promise<Target> {
  if (place.kind === 'folder') return FolderTarget.open(place.path)
  const { S3Target } = await import('./s3/s3-target.ts')
  return S3Target.open(place, options)
}
