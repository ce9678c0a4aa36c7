import type { ErrorCodec } from '@svc/internal-workers'
import type { Manifest } from '@svc/manifest'
import type { Sha256Digest } from '@svc/ref'
import {
  type MadeView,
  type View,
  ViewError,
  type ViewErrorCode,
  type ViewErrorDetails,
  type ViewLayout,
  type ViewMode
} from '@svc/view'
import { DaemonError } from '../errors.ts'

/** A view to be made: `createView` of `@svc/view` as plain data. */
export interface CreateRequest {
  readonly manifest: Pick<Manifest, 'files' | 'annotations'>
  readonly manifestDigest: Sha256Digest
  readonly upstreamConfig: string | undefined
  /** Where the blob of each file lies, or would lie. */
  readonly blobPaths: ReadonlyMap<Sha256Digest, string>
  readonly path: string
  readonly layout: ViewLayout
  readonly mode: ViewMode
  readonly root: string
  readonly repo: string | undefined
}

/**
 * What the thread for views does. All of it runs in one thread: a view that is being made is known to be so by the thread that
 * makes it, and any other would take it for the remains of one that was killed.
 */
export interface ViewCalls {
  /** Reports how many more bytes were copied. */
  create: { request: CreateRequest; response: MadeView; progress: number }
  read: { request: string; response: View | undefined }
  remove: { request: string; response: boolean }
}

interface WireError {
  readonly code: ViewErrorCode
  readonly message: string
  readonly details: ViewErrorDetails
  /** Of the system's error behind it. */
  readonly errno: string | undefined
}

const errnoOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException | undefined)?.code

/** How errors of views cross. The thread throws nothing but `ViewError`s; whatever else there is becomes `E_IO`. */
export const viewErrors = {
  encode: (error: unknown): WireError =>
    error instanceof ViewError
      ? { code: error.code, message: error.message, details: error.details, errno: errnoOf(error.cause) }
      : { code: 'E_IO', message: String(error), details: {}, errno: errnoOf(error) },
  decode: ({ code, message, details, errno }: WireError): Error =>
    new ViewError(code, message, details, errno === undefined ? undefined : { code: errno }),
  lost: (cause) => new ViewError('E_IO', 'the thread that makes views ended', {}, cause),
  closed: () => new DaemonError('E_SHUTTING_DOWN', 'the daemon is stopping; the view was not made')
} satisfies ErrorCodec
