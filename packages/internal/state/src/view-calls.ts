import { deserializeError, type SerializedError, serializeError } from '@svc/internal-errors'
import type { ErrorCodec } from '@svc/internal-workers'
import type { Sha256Digest } from '@svc/ref'
import type { MadeView, StandingRequest, StandingResult, View, ViewOptions, ViewSource } from '@svc/view'
import { ViewError } from '@svc/view/view-error'
import { LibraryError } from './library-error.ts'

/** A request to make a view: the arguments of `createView` of `@svc/view` as plain data. */
export interface CreateRequest extends Omit<ViewSource, 'blobPath'>, Omit<ViewOptions, 'signal' | 'onCopied'> {
  /** The path of each file's blob, whether it exists or not. */
  readonly blobPaths: ReadonlyMap<Sha256Digest, string>
}

/**
 * There is a single thread for views: only the process and thread that makes one knows that it is in progress;
 * another would take it for the leftovers of a killed process.
 */
export interface ViewCalls {
  /** Reports the number of bytes copied. */
  create: { request: CreateRequest; response: MadeView; progress: number }
  read: { request: string; response: View | undefined }
  /** With `model` only that one of a hub cache. */
  remove: { request: { readonly path: string; readonly model?: Sha256Digest | undefined }; response: boolean }
  /** Standing views: the folders of tools that follow the store. */
  isStandingInOrder: { request: { readonly path: string; readonly key: string }; response: boolean }
  /** Reports the number of bytes copied. */
  syncStanding: { request: StandingRequest; response: StandingResult; progress: number }
  removeStanding: { request: { readonly path: string; readonly root: string }; response: StandingResult }
}

/** Encodes errors of views. The thread throws only `ViewError`s; other errors become `E_IO`. */
export const viewErrors = {
  encode: (error: unknown): SerializedError =>
    serializeError(error instanceof ViewError ? error : new ViewError('E_IO', String(error), {}, error)),
  decode: (wire: SerializedError): Error => deserializeError(wire, { ViewError }),
  lost: (cause) => new ViewError('E_IO', 'the thread that makes views ended', {}, cause),
  closed: () => new LibraryError('E_CLOSED', 'the library was closed; the view was not made')
} satisfies ErrorCodec
