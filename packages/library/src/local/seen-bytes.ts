import { createHash } from 'node:crypto'
import { isForLoaders, recognize } from '@svc/classify'
import type { ClaimedFile, FileHere, OpenedFile } from '../import/source.ts'
import { localBytes } from '../import/staged.ts'

/** The hashes of files that were read, for a question about files whose cache has no hashes of its own. */
export class SeenBytes {
  /** Git's names are computed, too. */
  readonly isAsked: boolean
  readonly #hashes = new Map<string, ClaimedFile>()

  constructor(isAsked: boolean) {
    this.isAsked = isAsked
  }

  saw(name: string, hashes: ClaimedFile): void {
    this.#hashes.set(name, { ...this.#hashes.get(name), ...hashes })
  }

  /** Of the files that may leave with the model: no companion that only its owner's views have (spec add.37). */
  among(files: readonly FileHere[]): readonly ClaimedFile[] {
    const kept = ownNames(files)
    return [...this.#hashes].flatMap(([name, hashes]) => (kept.has(name) ? [] : hashes))
  }
}

/** A longer listing is recognized elsewhere: there, all files count as files that leave. */
const MAX_NAMES_HERE = 500

function ownNames(files: readonly FileHere[]): ReadonlySet<string> {
  if (files.length > MAX_NAMES_HERE) return new Set()
  const { uses } = recognize(files.map(({ name, sizeBytes }) => ({ name, sizeBytes })))
  const isOwn = (name: string): boolean => uses.get(name)?.use === 'skip' && !isForLoaders(name)
  return new Set(files.map(({ name }) => name).filter((name) => isOwn(name) && !name.endsWith('.gguf')))
}

export async function hashesOf(sizeBytes: number, opened: OpenedFile): Promise<Required<Omit<ClaimedFile, 'name'>>> {
  const sha256 = createHash('sha256')
  const gitSha1 = createHash('sha1').update(`blob ${sizeBytes}\0`)
  // the pipeline reads the file from its start, and closes it
  for await (const chunk of localBytes({ sizeBytes }, { ...opened, close: async () => undefined })) {
    sha256.update(chunk)
    gitSha1.update(chunk)
  }
  return { sha256: `sha256:${sha256.digest('hex')}`, gitSha1: gitSha1.digest('hex') }
}
