import { FolderTarget } from './folder.ts'
import type { Place } from './place.ts'
import type { S3Options } from './s3/options.ts'
import type { Target } from './target.ts'

/** Opens a place for writing. The S3 client is loaded only for buckets. @throws PublishError */
export async function openTarget(place: Place, options: S3Options = {}): Promise<Target> {
  if (place.kind === 'folder') return FolderTarget.open(place.path)
  const { S3Target } = await import('./s3/s3-target.ts')
  return S3Target.open(place, options)
}
