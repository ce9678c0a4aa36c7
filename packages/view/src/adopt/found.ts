import type { Sha256Digest } from '@svc/ref'

/** Tools whose caches can be read. `dmr` is Docker Model Runner, `dir` any folder with models. */
export type Tool = 'hf' | 'ollama' | 'lmstudio' | 'llama' | 'dmr' | 'ramalama' | 'dir'

/** A cache that is there. */
export interface CacheRoot {
  readonly tool: Tool
  /** Absolute; links in it are resolved. */
  readonly path: string
}

/** A file of a model as a cache holds it. */
export interface FoundFile {
  /** The name that it has in an artifact: a path with `/`. */
  readonly name: string
  /**
   * Absolute path of the regular file, with all links resolved, within the cache. It is to be opened without following
   * links: whoever can write to the cache can change it between this look and the next.
   */
  readonly path: string
  readonly sizeBytes: number
  /** What the cache says about the bytes; other bytes are damage that happened there. */
  readonly expectedSha256?: Sha256Digest
  /** The same by git's name of the blob, 40 hexadecimal digits. */
  readonly expectedGitSha1?: string
}

/** Why something was left out, or may disappoint. `message` is for people. */
export interface FoundWarning {
  readonly code: FoundWarningCode
  readonly path: string
  readonly message: string
}
/** Stable codes of {@link FoundWarning}; programs decide by them. */
export type FoundWarningCode =
  /** A link leads out of the cache, or in circles. */
  | 'leads-outside'
  /** A FIFO, socket, device or folder where a file belongs. */
  | 'not-regular'
  /** Named by the cache, and not there. */
  | 'absent'
  /** No right to read it, or the disk failed. */
  | 'unreadable'
  /** A document of the cache is too large, no JSON, or of another form. */
  | 'bad-document'
  /** A name that no artifact can have. */
  | 'bad-name'
  /** Another size than the cache says: damaged, or a download that was cut. */
  | 'size-differs'
  /** The cache has more entries, or deeper folders, than are looked at. */
  | 'too-many'
  /** The model's format is for the cache's own tool. */
  | 'tool-only'
  /** Parts of the model are of a kind that cannot be taken over. */
  | 'unsupported'

/** A model that a cache holds. */
export interface FoundModel {
  readonly tool: Tool
  /** What the tool calls it, e.g. `org/name`, `llama3.2:1b`. */
  readonly source: string
  /** Where to import it, `ns/name` as a reference has it. */
  readonly suggested: { readonly ns: string; readonly name: string }
  /** Repository and commit at the hub, where the cache knows them. */
  readonly hub?: { readonly repo: string; readonly revision?: string }
  /** Branches and tags of the hub that lead to this snapshot. */
  readonly refs?: readonly string[]
  /** In the order of their names, at least one. */
  readonly files: readonly FoundFile[]
  /** Of all files; bytes that several names share count once. */
  readonly sizeBytes: number
  readonly warnings: readonly FoundWarning[]
}

/** What a cache holds. */
export interface FoundCache {
  readonly root: CacheRoot
  readonly models: readonly FoundModel[]
  /** What belongs to no model. */
  readonly warnings: readonly FoundWarning[]
}
