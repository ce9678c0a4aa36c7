import type { HubErrorCode, HubOptions } from '@svc/hub'
import { plainErrors } from '@svc/internal-workers'
import type { UpstreamFile } from '@svc/library/parts'

/** A repository as strangers may see it: nothing that needs a token. */
export interface StrangerListing {
  /** In the hub's spelling. */
  readonly repoId: string
  readonly commit: string
  /** Those that can be had, by their upstream names. */
  readonly files: readonly UpstreamFile[]
  /** Not parts of a model, and too large or too many to be read alone; the names of the first ones. */
  readonly leftOut: readonly { readonly name: string; readonly reason: 'large' | 'many' }[]
  readonly more: number
}

export interface ListingRequest {
  readonly repo: string
  /** Undefined: the default branch. */
  readonly revision: string | undefined
  /** A branch or tag must name the commit. */
  readonly isNamedOnly: boolean
}

export interface ListingTasks {
  /** Progress: bytes that were read. */
  list: { request: ListingRequest; response: StrangerListing; progress: number }
}

/** The settings of a hub client that a thread can be given. */
export type ThreadHub = Pick<HubOptions, 'endpoint' | 'userAgent' | 'limits'>

/** Larger files are not held in memory. */
export const MAX_SMALL_BYTES = 64 << 20
/** Files of one repository; models with more parts are not loaded through mirrors. */
export const MAX_KEPT_FILES = 5_000
/** Names of omitted files. */
export const MAX_LEFT_OUT = 1_000

type ListingErrorCode = Exclude<HubErrorCode, 'E_INTERNAL'>
export type ListingError =
  | { readonly code: ListingErrorCode; readonly message: string }
  | { readonly plain: ReturnType<typeof plainErrors.encode> }

/** Keeps the codes of an import; other errors pass as plain ones. */
export function encodeListingError(error: unknown): ListingError {
  const { code, message } = error as { code?: unknown; message: string }
  return isHubCode(code) ? { code, message } : { plain: plainErrors.encode(error) }
}

const CODES: readonly unknown[] = [
  'E_UNKNOWN_REF',
  'E_SOURCE_FORBIDDEN',
  'E_RATE_LIMITED',
  'E_SOURCE_UNAVAILABLE',
  'E_NOT_IMPORTABLE'
] satisfies ListingErrorCode[]

const isHubCode = (code: unknown): code is ListingErrorCode => CODES.includes(code)
