import { dirname, join } from 'node:path'
import type { Sha256Digest } from '@svc/ref'
import { recoverViews } from './draft.ts'
import { type MarkedFile, type MarkedModel, type Marker, modelsOf, readMarker, type ViewLayout } from './marker.ts'
import type { ViewMode } from './place.ts'
import { checkedTarget } from './target.ts'

/** A file of a view. */
export interface ViewFile extends Omit<MarkedFile, 'at' | 'blob'> {
  /** Absolute. It may be a symbolic link: pass it on unresolved, so that shards are found next to it. */
  readonly path: string
}

/** A view on disk. */
export interface View {
  readonly path: string
  /** The folder to pass to a runtime: `path` itself, or the snapshot in layout `hf`. */
  readonly folder: string
  readonly layout: ViewLayout
  readonly mode: ViewMode
  readonly manifestDigest: Sha256Digest
  /** In a hub cache: the artifacts of the other models in it. */
  readonly others: readonly Sha256Digest[]
  /** The documents of the companions that lie in it, of all its models. */
  readonly companions: readonly Sha256Digest[]
  readonly files: readonly ViewFile[]
}

/**
 * The view at an absolute path, or undefined when nothing is there. Does not check whether its blobs still exist.
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

/** @param model default: the latest in it */
export function viewOf(path: string, marker: Marker, model: MarkedModel = marker): View {
  const { folder, mode, manifest, files } = model
  const { layout } = marker
  const others = modelsOf(marker).map((each) => each.manifest)
  return {
    path,
    folder: join(path, folder),
    layout,
    mode,
    manifestDigest: manifest,
    others: [...new Set(others)].filter((digest) => digest !== manifest),
    companions: modelsOf(marker).flatMap(({ companions }) => companions ?? []),
    files: files.map(({ at, blob: _, ...file }) => ({ ...file, path: join(path, at) }))
  }
}
