import { ViewError } from './errors.ts'

/** Longest path below a view's folder, in UTF-8 bytes, as in a manifest. */
const MAX_PATH_BYTES = 1_024
const MAX_SEGMENT_BYTES = 255
const MAX_SEGMENTS = 32
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\\]/

/** `.git`, also for file systems that ignore case or invisible characters. A bare repository has a file `HEAD` instead. */
const GIT = /^\p{Cf}*\.\p{Cf}*g\p{Cf}*i\p{Cf}*t\p{Cf}*$|^git~1$/iu

/** Why a name cannot be a path below a folder, or undefined if it can. */
export function defectOfPath(name: string): string | undefined {
  if (name === '') return 'it is empty'
  if (!name.isWellFormed()) return 'it is not well-formed Unicode'
  if (Buffer.byteLength(name) > MAX_PATH_BYTES) return `it has more than ${MAX_PATH_BYTES} bytes`
  if (UNSAFE.test(name)) return 'it contains a backslash or a control character'
  const segments = name.split('/')
  if (segments.length > MAX_SEGMENTS) return `it has more than ${MAX_SEGMENTS} segments`
  for (const segment of segments) {
    if (segment === '' || segment === '.' || segment === '..') return 'it has an empty, "." or ".." segment'
    if (Buffer.byteLength(segment) > MAX_SEGMENT_BYTES) return `a segment has more than ${MAX_SEGMENT_BYTES} bytes`
  }
  return undefined
}

/**
 * The paths already used in a view. Manifests were validated when they were sealed, but a view checks names where it
 * writes: so no defect elsewhere can lead to a path outside the folder.
 */
export class ClaimedNames {
  readonly #files = new Map<string, string>()
  readonly #folders = new Map<string, string>()
  readonly #reserved: ReadonlySet<string>

  /** @param reserved first segments that must not be used */
  constructor(reserved: Iterable<string> = []) {
    this.#reserved = new Set(reserved)
  }

  /** @returns why the path cannot be used: it is unsafe, taken, or a file and a folder at once; else it is the caller's now */
  claim(name: string): string | undefined {
    const defect = defectOfPath(name)
    if (defect !== undefined) return defect
    const folded = name.normalize('NFC')
    const segments = folded.split('/')
    if (this.#reserved.has(segments[0]!)) return 'the view needs that name for itself'
    if (segments.some((segment) => GIT.test(segment)) || /^head$/i.test(segments.at(-1)!))
      return 'git would take the folder for a repository and run the programs in its configuration'
    const twin = this.#files.get(folded) ?? this.#folders.get(folded)
    if (twin !== undefined) return `${JSON.stringify(shorten(twin))} has the same path`
    const folders = segments.slice(1).map((_, i) => segments.slice(0, i + 1).join('/'))
    const file = folders.map((folder) => this.#files.get(folder)).find((each) => each !== undefined)
    if (file !== undefined) return `${JSON.stringify(shorten(file))} is both a file and a folder`
    for (const folder of folders) this.#folders.set(folder, name)
    this.#files.set(folded, name)
    return undefined
  }
}

const shorten = (name: string): string => (name.length > 200 ? `${name.slice(0, 200)}…` : name)

export const badName = (name: string, defect: string): ViewError =>
  new ViewError('E_BAD_NAME', `${JSON.stringify(shorten(name))} cannot be a file of a view: ${defect}`, { name })
