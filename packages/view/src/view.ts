import { dirname, join } from 'node:path'
import type { Sha256Digest } from '@svc/ref'
import { recoverViews } from './draft.ts'
import { type MarkedFile, type Marker, readMarker, type ViewLayout } from './marker.ts'
import type { ViewMode } from './place.ts'
import { checkedTarget } from './target.ts'

/** A file of a view. */
export interface ViewFile extends Omit<MarkedFile, 'at'> {
  /** Absolute. It may be a symbolic link: hand it on as it is, shards are found beside it. */
  readonly path: string
}

/** A view on disk. */
export interface View {
  readonly path: string
  /** What a runtime that takes a folder is given: `path` itself, or the snapshot in the layout `hf`. */
  readonly folder: string
  readonly layout: ViewLayout
  readonly mode: ViewMode
  readonly manifestDigest: Sha256Digest
  readonly files: readonly ViewFile[]
}

/**
 * The view at an absolute path, or undefined when nothing is there. Says what the view was made of; whether its blobs are
 * still there is not looked at.
 * @throws ViewError `E_BAD_TARGET`, `E_NOT_A_VIEW`, `E_IO`.
 */
export async function readView(path: string): Promise<View | undefined> {
  const target = await checkedTarget(path)
  if (target === undefined) return undefined
  const found = await readMarker(target)
  if (found !== undefined) return viewOf(target, found)
  await recoverViews(dirname(target))
  const recovered = await readMarker(target)
  return recovered && viewOf(target, recovered)
}

export function viewOf(path: string, { folder, layout, mode, manifest, files }: Marker): View {
  return {
    path,
    folder: join(path, folder),
    layout,
    mode,
    manifestDigest: manifest,
    files: files.map(({ at, ...file }) => ({ ...file, path: join(path, at) }))
  }
}
