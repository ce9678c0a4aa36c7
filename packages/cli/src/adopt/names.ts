import type { FoundFile, FoundModel } from '@svc/view'
import { digestOfFile } from '../models/file-digest.ts'

const MAX_NAME_CHARS = 128

/** The tool's names, with a number if a different model of this run has the name and one of the quants. */
export class Names {
  /** By `ns/name:quant`. */
  readonly #made = new Map<string, FoundModel>()

  /** The name of a model; from now on it is taken. */
  async of(found: FoundModel, quants: readonly string[]): Promise<string> {
    for (let number = 1; ; number++) {
      const as = numbered(found.suggested, number)
      if (!(await this.#isFree(as, found, quants))) continue
      for (const quant of quants) this.#made.set(`${as}:${quant}`, found)
      return as
    }
  }

  async #isFree(as: string, found: FoundModel, quants: readonly string[]): Promise<boolean> {
    for (const quant of quants) {
      const other = this.#made.get(`${as}:${quant}`)
      if (other !== undefined && !(await isSame(other, found))) return false
    }
    return true
  }
}

function numbered({ ns, name }: FoundModel['suggested'], number: number): string {
  if (number === 1) return `${ns}/${name}`
  const suffix = `-${number}`
  return `${ns}/${name.slice(0, MAX_NAME_CHARS - suffix.length)}${suffix}`
}

/** Whether two models become the same artifacts: the same files, from the same commit where that is known. */
async function isSame(a: FoundModel, b: FoundModel): Promise<boolean> {
  if (a.hub?.repo !== b.hub?.repo || a.hub?.revision !== b.hub?.revision || a.files.length !== b.files.length)
    return false
  const alike = a.files.every(
    ({ name, sizeBytes }, i) => name === b.files[i]!.name && sizeBytes === b.files[i]!.sizeBytes
  )
  if (!alike) return false
  for (const [i, file] of a.files.entries()) if (!(await haveSameBytes(file, b.files[i]!))) return false
  return true
}

/** Reads only what the caches have no digests of. */
async function haveSameBytes(a: FoundFile, b: FoundFile): Promise<boolean> {
  if (a.path === b.path) return true
  if (a.expectedGitSha1 !== undefined && b.expectedGitSha1 !== undefined) return a.expectedGitSha1 === b.expectedGitSha1
  const [one, other] = [await digestOf(a), await digestOf(b)]
  return one !== undefined && one === other
}

const digestOf = async (file: FoundFile): Promise<string | undefined> =>
  file.expectedSha256 ?? (await digestOfFile(file.path).catch(() => undefined))
