import type { BigIntStats } from 'node:fs'
import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { errnoOf, ifAbsent } from '@svc/internal-errors'
import { NOT_REGULAR, openRegular } from '@svc/internal-files'
import { defectOfFileName, type FolderFile, MARKER } from '@svc/manifest'
import { isDigest, type Sha256Digest } from '@svc/ref'
import { ioError, ViewError } from './errors.ts'
import { isOurs } from './owner.ts'
import type { ViewMode } from './place.ts'

/** `files`: every file under its own name. `hf`: a hub cache for `HF_HUB_CACHE`, to which other models are added. */
export type ViewLayout = 'files' | 'hf'

/** One file of a view, as its marker lists it. */
export interface MarkedFile {
  /** The name within the model, e.g. `model-00001-of-00002.safetensors`. */
  readonly name: string
  /** Its path below the view's folder. */
  readonly at: string
  /** Layout `hf`: its own file, below the view's folder; a later model may have pointed the link elsewhere. */
  readonly blob?: string
  readonly sizeBytes: number
  /** That of the manifest's entry; `config.json` has `config`, members of a tar have the tar's. */
  readonly kind: FolderFile['kind']
  readonly role?: string
  readonly variant?: string
  readonly part?: number
  /** Absent for files written from text or unpacked from a tar. */
  readonly digest?: Sha256Digest
}

/** Version of the rules by which files are listed: a view of other rules is made again. */
export const LIST_RULES = 1

/** A model in a view: of which artifact it is, and which files are its own. */
export interface MarkedModel {
  readonly manifest: Sha256Digest
  /** The document of the companions that lie in it. */
  readonly companions?: Sha256Digest
  /** {@link LIST_RULES} when it was made; absent in views of earlier versions. */
  readonly rules?: number
  readonly mode: ViewMode
  /** Below the view's folder: the folder to pass to a runtime; empty for the view itself. */
  readonly folder: string
  readonly files: readonly MarkedFile[]
  /** Files below the view's folder other than those in `files` and the marker. */
  readonly others: readonly string[]
}

/** The content of the marker file: that the folder is a view, and which models it shows. */
export interface Marker extends MarkedModel {
  readonly format: 1
  readonly layout: ViewLayout
  /** In a hub cache: the models that were there before this one, the latest first. */
  readonly earlier?: readonly MarkedModel[]
}

/** All models of a view, the latest first. */
export const modelsOf = ({ format: _, layout: __, earlier = [], ...latest }: Marker): readonly MarkedModel[] => [
  latest,
  ...earlier
]

/**
 * The marker of a view with layout `hf` lies in `.locks`, the one folder that tools do not take for a model when they list
 * a hub cache.
 */
const MARKERS: Readonly<Record<ViewLayout, string>> = { files: MARKER, hf: `.locks/${MARKER}` }
export const MAX_MARKER_BYTES = 16 * 1024 * 1024
const MODES: readonly unknown[] = ['symlink', 'copy', 'hardlink']

export const markerPath = (layout: ViewLayout): string => MARKERS[layout]
export const formatMarker = (marker: Marker): string => `${JSON.stringify(marker, null, 1)}\n`

/** The view at `path`, or undefined if nothing is there. @throws ViewError `E_NOT_A_VIEW`, `E_IO`. */
export async function readMarker(path: string): Promise<Marker | undefined> {
  return steadily(path, async (stats) => {
    if (stats === undefined) return undefined
    if (!stats.isDirectory())
      throw notAView(path, stats.isSymbolicLink() ? 'it is a symbolic link' : 'it is not a folder')
    const marker = await readMarkerIn(path)
    if (marker === undefined) throw notAView(path, `it has no ${MARKER}`)
    return marker
  })
}

/**
 * As {@link readMarker}, for a view that is about to be replaced, removed or handed out as ours. Undefined also for an
 * empty folder, which a rename replaces.
 * @throws ViewError `E_NOT_A_VIEW`, also for one that another user may have made, `E_IO`.
 */
export async function readReplaceable(path: string): Promise<Marker | undefined> {
  let marker: Marker | undefined
  try {
    marker = await readMarker(path)
  } catch (error) {
    if (!(error instanceof ViewError) || error.code !== 'E_NOT_A_VIEW' || !(await isEmptyFolder(path))) throw error
    return undefined
  }
  if (marker === undefined) return undefined
  const ours = await isOurs(path).catch((error: unknown) => {
    if (errnoOf(error) === 'ENOENT') return true
    throw ioError(error, 'look for a view', path)
  })
  if (!ours) throw notAView(path, 'it belongs to another user')
  return marker
}

/** Whether `path` is an empty folder of this user, and no link to one. */
async function isEmptyFolder(path: string): Promise<boolean> {
  const stats = await lstat(path).catch(() => undefined)
  if (stats?.isDirectory() !== true || !(await isOurs(path).catch(() => false))) return false
  return (await readdir(path).catch(() => ['unreadable'])).length === 0
}

/**
 * Repeats a look at a place until it is unchanged before and after: another process may be making or removing a view
 * there.
 */
export async function steadily<T>(path: string, look: (stats: BigIntStats | undefined) => Promise<T>): Promise<T> {
  for (let triesLeft = 100; ; triesLeft--) {
    const before = await lookAt(path)
    const result = await look(before).then(
      (value) => ({ value }),
      (error: unknown) => ({ error })
    )
    const after = await lookAt(path)
    // a rename changes the ctime of the folder that it moves.
    const isSteady = before?.ino === after?.ino && before?.ctimeNs === after?.ctimeNs
    if (!isSteady && triesLeft > 0) continue
    if ('error' in result) throw result.error
    return result.value
  }
}

async function lookAt(path: string): Promise<BigIntStats | undefined> {
  try {
    return await lstat(path, { bigint: true }).catch(ifAbsent)
  } catch (error) {
    throw ioError(error, 'look for a view', path)
  }
}

async function readMarkerIn(path: string): Promise<Marker | undefined> {
  for (const layout of ['files', 'hf'] as const) {
    // a link in place of the folder is not followed either.
    if (layout === 'hf' && !(await lookAt(join(path, '.locks')))?.isDirectory()) continue
    const text = await readSmall(join(path, MARKERS[layout]))
    if (text === undefined) continue
    const marker = tryParseMarker(text)
    if (marker?.layout !== layout) throw notAView(path, `svc did not write the ${MARKERS[layout]} in it`)
    return marker
  }
  return undefined
}

async function readSmall(path: string): Promise<string | undefined> {
  try {
    await using handle = await openRegular(path)
    return (await handle.stat()).size > MAX_MARKER_BYTES ? '' : await handle.readFile('utf8')
  } catch (error) {
    if (['ENOENT', 'ELOOP', 'ENXIO', NOT_REGULAR].includes(errnoOf(error) ?? '')) return undefined
    throw ioError(error, 'read the marker', path)
  }
}

const notAView = (path: string, why: string): ViewError =>
  new ViewError('E_NOT_A_VIEW', `${path} exists and is not a view that svc made (${why}); nothing in it was changed`, {
    path
  })

function tryParseMarker(text: string): Marker | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  if (typeof value !== 'object' || value === null) return undefined
  const { format, layout, earlier = [] } = value as Record<string, unknown>
  const isSound = format === 1 && (layout === 'files' || layout === 'hf') && Array.isArray(earlier)
  return isSound && [value, ...earlier].every(isModel) ? (value as Marker) : undefined
}

function isModel(value: unknown): value is MarkedModel {
  if (typeof value !== 'object' || value === null) return false
  const { manifest, companions, rules, mode, folder, files, others } = value as Record<string, unknown>
  const isPath = (path: unknown): path is string => typeof path === 'string' && defectOfFileName(path) === undefined
  const isOptional = (field: unknown, type: string): boolean => field === undefined || typeof field === type
  const isFile = (file: unknown): file is MarkedFile => {
    if (typeof file !== 'object' || file === null) return false
    const { name, at, blob, sizeBytes, kind, role, variant, part, digest } = file as Record<string, unknown>
    return (
      isPath(name) &&
      isPath(at) &&
      (blob === undefined || isPath(blob)) &&
      Number.isSafeInteger(sizeBytes) &&
      typeof kind === 'string' &&
      isOptional(role, 'string') &&
      isOptional(variant, 'string') &&
      isOptional(part, 'number') &&
      (digest === undefined || isDigest(digest))
    )
  }
  return (
    isDigest(manifest) &&
    (companions === undefined || isDigest(companions)) &&
    isOptional(rules, 'number') &&
    MODES.includes(mode) &&
    (folder === '' || isPath(folder)) &&
    Array.isArray(files) &&
    files.every(isFile) &&
    Array.isArray(others) &&
    others.every(isPath)
  )
}
