import type { FoundFile, FoundModel } from '@svc/view'
import { digestOfFile } from '../models/file-digest.ts'

const MAX_NAME_CHARS = 128

/**
 * The tool's names, with a number if a different model of this run has the name: one with the same quant, or of another
 * folder.
 */
export class Names {
  /** By `ns/name:quant`. */
  readonly #made = new Map<string, FoundModel>()
  /** By `ns/name`, those that were found in a folder. */
  readonly #inFolders = new Map<string, FoundModel[]>()

  /** The name of a model; from now on it is taken. */
  async of(found: FoundModel, quants: readonly string[]): Promise<string> {
    for (let number = 1; ; number++) {
      const as = numbered(found.suggested, number)
      if (!(await this.#isFree(as, found, quants))) continue
      for (const quant of quants) this.#made.set(`${as}:${quant}`, found)
      if (found.folder !== undefined) this.#inFolders.set(as, [...(this.#inFolders.get(as) ?? []), found])
      return as
    }
  }

  async #isFree(as: string, found: FoundModel, quants: readonly string[]): Promise<boolean> {
    for (const quant of quants) {
      const other = this.#made.get(`${as}:${quant}`)
      if (other !== undefined && !(await isSame(other, found))) return false
    }
    const elsewhere = this.#inFolders.get(as)?.filter(({ folder }) => folder !== found.folder) ?? []
    if (found.folder === undefined || elsewhere.length === 0) return true
    for (const other of elsewhere) if (await isSame(other, found)) return true
    return false
  }
}

function numbered({ ns, name }: FoundModel['suggested'], number: number): string {
  if (number === 1) return `${ns}/${name}`
  const suffix = `-${number}`
  return `${ns}/${name.slice(0, MAX_NAME_CHARS - suffix.length)}${suffix}`
}

/** Whether two models become the same artifacts: the same files, from the same commit where that is known. */
async function isSame(a: FoundModel, b: FoundModel): Promise<boolean> {
  if (commitOf(a) !== commitOf(b) || a.files.length !== b.files.length) return false
  const alike = a.files.every(
    ({ name, sizeBytes }, i) => name === b.files[i]!.name && sizeBytes === b.files[i]!.sizeBytes
  )
  if (!alike) return false
  for (const [i, file] of a.files.entries()) if (!(await haveSameBytes(file, b.files[i]!))) return false
  return true
}

/** Only with a commit does the repository become part of an artifact. */
const commitOf = ({ hub }: FoundModel): string | undefined => hub?.revision && `${hub.repo}@${hub.revision}`

/** Reads only what the caches have no digests of. */
async function haveSameBytes(a: FoundFile, b: FoundFile): Promise<boolean> {
  if (a.path === b.path) return true
  if (a.expectedGitSha1 !== undefined && b.expectedGitSha1 !== undefined) return a.expectedGitSha1 === b.expectedGitSha1
  const [one, other] = [await digestOf(a), await digestOf(b)]
  return one !== undefined && one === other
}

const digestOf = async (file: FoundFile): Promise<string | undefined> =>
  file.expectedSha256 ?? (await digestOfFile(file.path).catch(() => undefined))
