import { ClaimedNames } from '@svc/manifest'
import { type Sha256Digest, tryParseDigest } from '@svc/ref'
import type { CachedFile, CacheFolder } from './cache-folder.ts'
import type { FoundFile, FoundModel, FoundWarning, Tool } from './found.ts'
import { suggestName } from './model-names.ts'

const MAX_FILES = 20_000
const REPO = /^(?=.{1,200}$)[A-Za-z0-9][A-Za-z0-9._-]*(?:\/[A-Za-z0-9][A-Za-z0-9._-]*)?$/

/** What the cache records about a file. */
export interface Expectation {
  readonly sha256?: string | undefined
  readonly gitSha1?: string | undefined
  readonly sizeBytes?: number | undefined
}

/** Collects the files of a model. */
export class ModelDraft {
  readonly #tool: Tool
  readonly #source: string
  readonly #cache: CacheFolder
  /** The cache, with its warnings going to this model. */
  readonly folder: CacheFolder
  readonly #names = new ClaimedNames()
  readonly #files: FoundFile[] = []
  /** Sizes by device and inode. */
  readonly #sizes = new Map<string, number>()
  readonly #warnings: FoundWarning[] = []

  constructor(tool: Tool, source: string, folder: CacheFolder) {
    this.#tool = tool
    this.#source = source
    this.#cache = folder
    this.folder = folder.reportingTo((warning) => this.#warnings.push(warning))
  }

  /** Adds the file at `at` to the model as `name`. A file that cannot be used becomes a warning. */
  async add(name: string, at: string, expected: Expectation = {}): Promise<void> {
    const file = await this.folder.file(at)
    if (file !== undefined) this.addFile(name, at, file, expected)
  }

  addFile(name: string, at: string, { path, stats }: CachedFile, expected: Expectation = {}): void {
    if (this.#files.length === MAX_FILES) {
      this.folder.warn('too-many', at, `the model has more than ${MAX_FILES} files; this one was left out`)
      return
    }
    const defect = this.#names.claim(name)
    if (defect !== undefined) {
      this.folder.warn('bad-name', at, `the file cannot be imported: ${defect}`)
      return
    }
    if (expected.sizeBytes !== undefined && expected.sizeBytes !== stats.size) {
      this.folder.warn('size-differs', at, `it has ${stats.size} bytes, but the cache says ${expected.sizeBytes}`)
    }
    this.#sizes.set(`${stats.dev}:${stats.ino}`, stats.size)
    const expectedSha256 = tryParseSha256(expected.sha256)
    const { gitSha1 } = expected
    this.#files.push({
      name,
      path,
      sizeBytes: stats.size,
      ...(expectedSha256 === undefined ? {} : { expectedSha256 }),
      ...(gitSha1 !== undefined && /^[0-9a-f]{40}$/.test(gitSha1) ? { expectedGitSha1: gitSha1 } : {})
    })
  }

  /**
   * @param suggested text to derive a namespace and a name from
   * @returns nothing when the model has no files; its warnings then go to the cache
   */
  finish(
    suggested: { readonly ns: string; readonly name: string },
    { hub, refs, folder }: Pick<FoundModel, 'hub' | 'refs' | 'folder'> = {}
  ): readonly FoundModel[] {
    if (this.#files.length === 0) {
      this.#cache.report(this.#warnings)
      return []
    }
    const model = {
      tool: this.#tool,
      source: this.#source,
      suggested: suggestName(suggested.ns, suggested.name, this.#tool),
      ...(hub !== undefined && REPO.test(hub.repo) && { hub }),
      ...(refs !== undefined && { refs }),
      ...(folder !== undefined && { folder }),
      files: this.#files.toSorted((a, b) => (a.name < b.name ? -1 : 1)),
      sizeBytes: [...this.#sizes.values()].reduce((sum, size) => sum + size, 0),
      warnings: this.#warnings
    }
    return [model]
  }
}

/** From `sha256:<hex>`, `sha256-<hex>` or bare hex; undefined for anything else. */
export function tryParseSha256(text: string | undefined): Sha256Digest | undefined {
  const hex = /^(?:sha256[:-])?([0-9a-fA-F]{64})$/.exec(text ?? '')?.[1]
  return hex === undefined ? undefined : tryParseDigest(`sha256:${hex.toLowerCase()}`)
}
