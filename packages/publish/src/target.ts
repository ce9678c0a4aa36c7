import type { CopyOptions } from '@svc/internal-files'
import type { KnownContent } from './content.ts'

/** One object of the layout, with the key to store it under. */
export interface PublishedObject extends KnownContent {
  /** Relative, `/`-separated, not percent-encoded. */
  readonly key: string
  readonly contentType: string
  readonly cacheControl: string
}

/** Cancellation and progress of one operation. */
export interface ObjectOptions extends CopyOptions {
  /** The key is derived from the content: an object of the right size is accepted unread. */
  readonly trustKey?: boolean | undefined
}

/** A small document read from a target. */
export interface StoredDocument {
  readonly bytes: Uint8Array
  /** Changes whenever the document does: an ETag or a digest. */
  readonly version: string
}

/**
 * A store of objects by key. Writes are atomic: an object is visible in full or not at all, even after a crash, and an
 * interrupted write can be resumed. Errors are {@link PublishError}s; an abort throws the signal's reason.
 */
export interface Target {
  /** For display. */
  readonly name: string
  /** Base URL for readers, if the target implies one; ends in a slash. */
  readonly url: string | undefined
  /** Fails early if the objects cannot fit: throws `E_NO_SPACE`, or `E_BAD_TARGET` for keys that are too long. */
  requireRoom(objects: readonly PublishedObject[]): Promise<void>
  /** Whether the object is present with the same content. */
  has(object: PublishedObject, options: ObjectOptions): Promise<boolean>
  /** Writes the object, replacing any under the same key. Verifies the digest before the object becomes visible. */
  put(object: PublishedObject, options: ObjectOptions): Promise<void>
  /** Reads the bytes `[start, end)` of a stored object. */
  readRange(object: PublishedObject, start: number, end: number, signal?: AbortSignal): Promise<Uint8Array>
  /** Undefined if there is none; throws `E_BAD_TARGET` if it is longer than `maxBytes`. */
  readDocument(key: string, maxBytes: number, signal?: AbortSignal): Promise<StoredDocument | undefined>
  /** Compare-and-swap: replaces the document read as `before` (undefined: none). False if it has changed since. */
  replaceDocument(
    object: PublishedObject & { readonly content: Uint8Array },
    before: StoredDocument | undefined,
    signal?: AbortSignal
  ): Promise<boolean>
  /** Removes an object if it is there. */
  remove(key: string, signal?: AbortSignal): Promise<void>
  /** False if it is known to hold other objects than those that svc is writing. */
  isEmpty(signal?: AbortSignal): Promise<boolean>
  close(): Promise<void>
}
