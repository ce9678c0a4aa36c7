import type { HubErrorCode, HubOptions } from '@svc/hub'
import { type ErrorCodec, plainErrors, WorkerThread, workerUrl } from '@svc/internal-workers'
import { DaemonError } from '../../errors.ts'
import { UnimportableListingError, type UpstreamFile } from '../../library/upstream-repo.ts'
import { STRANGERS_HEAP_MIB } from '../../offload/pool.ts'

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

/** The client of the hub for strangers: it sends no token, and reads shorter listings than the owner's. */
export const STRANGER_HUB = {
  limits: { entries: 100_000, pages: 200, jsonBytes: 4 << 20, listingBytes: 16 << 20 }
} as const satisfies HubOptions

/** The settings of a hub client that a thread can be given. */
export type ThreadHub = Pick<HubOptions, 'endpoint' | 'userAgent' | 'limits'>

/** Larger files are not held in memory. */
export const MAX_SMALL_BYTES = 64 << 20
/** Files of one repository; models with more parts are not loaded through mirrors. */
export const MAX_KEPT_FILES = 5_000
/** Names of omitted files. */
export const MAX_LEFT_OUT = 1_000

type ListingError =
  | { readonly code: HubErrorCode; readonly message: string }
  | { readonly plain: ReturnType<typeof plainErrors.encode> }

/** Errors with the codes of an import; others pass as plain ones. */
export const listingErrors = {
  encode: (error: unknown): ListingError => {
    const { code, message } = error as { code?: unknown; message: string }
    return isHubCode(code) ? { code, message } : { plain: plainErrors.encode(error) }
  },
  decode: (wire: ListingError): Error => {
    if ('plain' in wire) return plainErrors.decode(wire.plain)
    if (wire.code === 'E_NOT_IMPORTABLE') return new UnimportableListingError(wire.message)
    return new DaemonError(wire.code, wire.message, { status: 502 })
  },
  lost: (cause) => new DaemonError('E_SOURCE_UNAVAILABLE', 'the thread that reads listings ended', { cause }),
  closed: () => new DaemonError('E_SHUTTING_DOWN', 'the daemon is stopping')
} satisfies ErrorCodec

const CODES: readonly unknown[] = [
  'E_UNKNOWN_REF',
  'E_SOURCE_FORBIDDEN',
  'E_RATE_LIMITED',
  'E_SOURCE_UNAVAILABLE',
  'E_NOT_IMPORTABLE'
] satisfies HubErrorCode[]

const isHubCode = (code: unknown): code is HubErrorCode => CODES.includes(code)

/**
 * Reads and recognizes the listings that strangers cause, in a thread with a heap of its own (spec add.40): however a
 * listing is made, the daemon's heap holds only {@link MAX_KEPT_FILES} and {@link MAX_LEFT_OUT} names of it.
 */
export class StrangerListings {
  readonly #thread: WorkerThread<ListingTasks>

  constructor(hub: ThreadHub) {
    this.#thread = new WorkerThread<ListingTasks>({
      url: workerUrl('./listing-worker', import.meta.url),
      name: 'svcd-listings',
      workerData: hub,
      errors: listingErrors,
      oldMib: STRANGERS_HEAP_MIB
    })
  }

  /**
   * @param onBytes counts the bytes that the hub sent, also for a refused listing
   * @throws DaemonError with the codes of an import; `E_SOURCE_FORBIDDEN` also for a commit that nothing names
   */
  list(request: ListingRequest, onBytes: (bytes: number) => void): Promise<StrangerListing> {
    return this.#thread.call('list', request, { onProgress: onBytes })
  }

  close(): Promise<void> {
    return this.#thread.close()
  }
}
