import type { Sha256Digest } from '@svc/ref'

/** Tools whose caches can be read. `dmr` is Docker Model Runner, `dir` any folder with models. */
export type Tool = 'hf' | 'ollama' | 'lmstudio' | 'llama' | 'dmr' | 'ramalama' | 'dir'

/** A cache that exists. */
export interface CacheRoot {
  readonly tool: Tool
  /** Absolute, with links resolved. */
  readonly path: string
}

/** A file of a model as a cache holds it. */
export interface FoundFile {
  /** Its name in an artifact: a path separated by `/`. */
  readonly name: string
  /**
   * Absolute path of the regular file within the cache, with all links resolved. Open it without following links:
   * whoever can write to the cache could replace it in the meantime.
   */
  readonly path: string
  readonly sizeBytes: number
  /** The digest that the cache records; other bytes mean that the file was damaged there. */
  readonly expectedSha256?: Sha256Digest
  /** The same as git's name of the blob, 40 hexadecimal digits. */
  readonly expectedGitSha1?: string
}

/** Why something was skipped, or may not work. `message` is for people. */
export interface FoundWarning {
  readonly code: FoundWarningCode
  readonly path: string
  readonly message: string
}
/** Stable codes of {@link FoundWarning}; programs should test these. */
export type FoundWarningCode =
  /** A link points outside the cache, or to itself. */
  | 'leads-outside'
  /** A FIFO, socket, device or folder where a file belongs. */
  | 'not-regular'
  /** Listed by the cache, but missing. */
  | 'absent'
  /** No permission to read it, or the disk failed. */
  | 'unreadable'
  /** A document of the cache is too large, not JSON, or has another structure. */
  | 'bad-document'
  /** A name that is not allowed in an artifact. */
  | 'bad-name'
  /** The size differs from the cache's records: damaged, or an incomplete download. */
  | 'size-differs'
  /** The cache exceeds the limit of entries or of folder depth. */
  | 'too-many'
  /** Only the cache's own tool can load this format. */
  | 'tool-only'
  /** The model has components that cannot be imported. */
  | 'unsupported'

/** A model in a cache. */
export interface FoundModel {
  readonly tool: Tool
  /** The tool's name for it, e.g. `org/name`, `llama3.2:1b`. */
  readonly source: string
  /** The name to import it under, a valid `ns/name`. */
  readonly suggested: { readonly ns: string; readonly name: string }
  /** Repository and commit at the hub, as far as the cache says: anyone may have written that. */
  readonly hub?: { readonly repo: string; readonly revision?: string }
  /** The hub's branches and tags that point to this snapshot. */
  readonly refs?: readonly string[]
  /** Of tool `dir`: the folder of its repository; models of different folders are different ones. */
  readonly folder?: string
  /** Sorted by name; at least one. */
  readonly files: readonly FoundFile[]
  /** Of all files; bytes with several names count once. */
  readonly sizeBytes: number
  readonly warnings: readonly FoundWarning[]
}

/** The contents of a cache. */
export interface FoundCache {
  readonly root: CacheRoot
  readonly models: readonly FoundModel[]
  /** Warnings that concern no particular model. */
  readonly warnings: readonly FoundWarning[]
}
