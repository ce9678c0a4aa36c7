import { defectOfPath } from './file-rules.ts'

const CONTROL = /[\u0080-\u009f]/

/** `.git`, also for file systems that ignore case or invisible characters. A bare repository has a file `HEAD` instead. */
const GIT = /^\p{Cf}*\.\p{Cf}*g\p{Cf}*i\p{Cf}*t\p{Cf}*$|^git~1$/iu

/** Why a name cannot be that of a file in a model's folder, or undefined if it can. */
export const defectOfFileName = (name: string): string | undefined =>
  name === ''
    ? 'it is empty'
    : (defectOfPath(name) ?? (CONTROL.test(name) ? 'it contains a control character' : undefined))

/** The paths already used in a folder: so no defect elsewhere can lead to a path outside it, or to two files at one path. */
export class ClaimedNames {
  readonly #files = new Map<string, string>()
  readonly #folders = new Map<string, string>()
  readonly #reserved: ReadonlySet<string>
  readonly #fold: (name: string) => string

  /**
   * @param reserved first segments that must not be used
   * @param ignoresCase paths that differ in case alone are the same, as on many file systems
   */
  constructor(reserved: Iterable<string> = [], ignoresCase = false) {
    this.#reserved = new Set(reserved)
    this.#fold = (name) => (ignoresCase ? name.normalize('NFC').toLowerCase() : name.normalize('NFC'))
  }

  /** @returns why the path cannot be used: it is unsafe, taken, or a file and a folder at once; else it is the caller's now */
  claim(name: string): string | undefined {
    const defect = defectOfFileName(name)
    if (defect !== undefined) return defect
    const folded = this.#fold(name)
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
