import type { ViewLayout, ViewMode } from '@svc/view'

/** A view that is asked for. */
export interface ViewRequest {
  readonly ref: string
  /** Default `files`. */
  readonly layout?: ViewLayout
  /** Default `symlink`. */
  readonly mode?: ViewMode
  /** Absolute; absent, an empty folder, or an earlier view. Default: the managed view of the artifact. */
  readonly path?: string
  /** False: an earlier view of another model at `path` stays. */
  readonly replace?: boolean
  /** Protects the managed view from removal for this long. */
  readonly holdSeconds?: number
}

interface PlacedView {
  /** Absolute. */
  readonly path: string
  /** It lies below `<root>/views`. */
  readonly managed: boolean
  readonly manifestDigest: string
  readonly layout: ViewLayout
  readonly mode: ViewMode
  /** UTC, RFC 3339. */
  readonly heldUntil?: string
}

/** A file of a view. */
interface GivenFile {
  /** Within the model. */
  readonly name: string
  /** Absolute; links are not resolved. */
  readonly path: string
  readonly size: number
  /** Of the entry in the manifest; of the tar for files unpacked from one; `companion` for companions. */
  readonly kind: string
  readonly role?: string
  readonly variant?: string
  readonly part?: number
  /** The owner's own, which never leaves this store. */
  readonly own?: true
  readonly digest?: string
}

/** A view that is there now. */
export interface GivenView extends PlacedView {
  readonly ref: string
  /** False if the same view was already there and complete. */
  readonly made: boolean
  /** For runtimes that take a folder. */
  readonly folder: string
  /** For runtimes: the GGUF, the first shard of a split one, or else the folder; absent if several fit. */
  readonly loads?: string
  readonly files: readonly GivenFile[]
  /** Why loaders may refuse the folder. */
  readonly warnings?: readonly string[]
}

/** A view in the list of views. */
export interface ListedView extends PlacedView {
  /** In a hub cache: the artifacts of the other models in it. */
  readonly others?: readonly string[]
  /** False if it cannot be found now: its disk is not mounted, or it is not made yet. */
  readonly present: boolean
  readonly making?: { readonly bytesDone: number; readonly bytesTotal: number }
}

/** A view that was removed. */
export interface ViewRemoval {
  readonly path: string
  /** False if the folder was already gone. */
  readonly removed: boolean
}
