// Makes, replaces or removes a view once, in a process that tests kill, or whose system calls fail.
import { readFileSync } from 'node:fs'
import type { ManifestFile } from '@svc/manifest'
import type { Sha256Digest } from '@svc/ref'
import { createView, removeView, type ViewError, type ViewMode } from '@svc/view'

export interface ViewJob {
  readonly does: 'create' | 'remove'
  readonly path: string
  readonly mode: ViewMode
  readonly store: string
  readonly manifestDigest: Sha256Digest
  readonly files: readonly ManifestFile[]
}

if (process.argv[2] !== undefined) {
  const job = JSON.parse(readFileSync(process.argv[2], 'utf8')) as ViewJob
  const blobPath = (digest: Sha256Digest): string =>
    `${job.store}/blobs/sha256/${digest.slice(7, 9)}/${digest.slice(9)}`
  const source = { manifest: { files: job.files, annotations: {} }, manifestDigest: job.manifestDigest, blobPath }
  const work: Promise<unknown> =
    job.does === 'remove' ? removeView(job.path) : createView(source, { path: job.path, mode: job.mode })
  await work.then(
    () => console.log('done'),
    (error: ViewError) => console.log(`failed ${error.code ?? String(error)}`)
  )
}
