import type { KnownContent } from './content.ts'

/** One file of the layout, on its way to a target. */
export interface PublishedObject extends KnownContent {
  /** Relative, `/`-separated, with names as people write them. */
  readonly key: string
  readonly contentType: string
  readonly cacheControl: string
}

/** How work on one object is watched and stopped. */
export interface ObjectOptions {
  readonly signal?: AbortSignal | undefined
  /** Called with the bytes of each step, those that were found there included. */
  readonly onBytes?: ((bytes: number) => void) | undefined
}

/** A small document as it lies in a target. */
export interface StoredDocument {
  readonly bytes: Uint8Array
  /** Tells this state of it from later ones. */
  readonly version: string
}

/**
 * A place that takes objects under keys. Whatever interrupts it, an object is there whole under its key or not at all, and what was
 * begun is taken up by the next try. Errors are {@link PublishError}s; an abort throws the signal's reason.
 */
export interface Target {
  /** As people write it. */
  readonly name: string
  /** Where readers find it, as far as that follows from the place; ends in a slash. */
  readonly url: string | undefined
  /** Throws `E_NO_SPACE`, or `E_BAD_TARGET` for keys that are too long, when it is clear beforehand that these do not fit. */
  requireRoom(objects: readonly PublishedObject[]): Promise<void>
  /** Whether the object is there with these very bytes. */
  has(object: PublishedObject, options: ObjectOptions): Promise<boolean>
  /** Puts it there, in place of whatever has the key. Its bytes are checked against the digest before they become visible. */
  put(object: PublishedObject, options: ObjectOptions): Promise<void>
  /** What a reader of that range gets. */
  readRange(object: PublishedObject, start: number, end: number, signal?: AbortSignal): Promise<Uint8Array>
  /** Undefined where there is none; throws `E_BAD_TARGET` for one of more than `maxBytes`. */
  readDocument(key: string, maxBytes: number, signal?: AbortSignal): Promise<StoredDocument | undefined>
  /** Puts a document in place of `before`; false when somebody else was faster. */
  replaceDocument(
    object: PublishedObject & { readonly content: Uint8Array },
    before: StoredDocument | undefined,
    signal?: AbortSignal
  ): Promise<boolean>
  close(): Promise<void>
}
