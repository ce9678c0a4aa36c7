import type { HubOptions } from '@svc/hub'
import { type ErrorCodec, plainErrors, WorkerThread, workerUrl } from '@svc/internal-workers'
import { LibraryError, STRANGERS_HEAP_MIB, UnimportableListingError } from '@svc/library/parts'
import {
  encodeListingError,
  type ListingError,
  type ListingRequest,
  type ListingTasks,
  type StrangerListing,
  type ThreadHub
} from './listing-task.ts'

/** The client of the hub for strangers: it sends no token, and reads shorter listings than the owner's. */
export const STRANGER_HUB = {
  limits: { entries: 100_000, pages: 200, jsonBytes: 4 << 20, listingBytes: 16 << 20 }
} as const satisfies HubOptions

/** Errors with the codes of an import; others pass as plain ones. */
const listingErrors = {
  encode: encodeListingError,
  decode: (wire: ListingError): Error => {
    if ('plain' in wire) return plainErrors.decode(wire.plain)
    if (wire.code === 'E_NOT_IMPORTABLE') return new UnimportableListingError(wire.message)
    return new LibraryError(wire.code, wire.message)
  },
  lost: (cause) => new LibraryError('E_SOURCE_UNAVAILABLE', 'the thread that reads listings ended', { cause }),
  closed: () => new LibraryError('E_CLOSED', 'the hub client is closed')
} satisfies ErrorCodec

/**
 * Reads and recognizes the listings that strangers cause, in a thread with a heap of its own (spec add.40): however a
 * listing is made, the heap of the rest holds only {@link MAX_KEPT_FILES} and {@link MAX_LEFT_OUT} names of it.
 */
export class StrangerListings {
  readonly #thread: WorkerThread<ListingTasks>

  constructor(hub: ThreadHub) {
    this.#thread = new WorkerThread<ListingTasks>({
      url: workerUrl('./listing-worker', import.meta.url),
      name: 'svc-listings',
      workerData: hub,
      errors: listingErrors,
      oldMib: STRANGERS_HEAP_MIB
    })
  }

  /**
   * @param onBytes counts the bytes that the hub sent, also for a refused listing
   * @throws LibraryError `E_UNKNOWN_REF`, `E_SOURCE_FORBIDDEN` also for a commit that nothing names
   */
  list(request: ListingRequest, onBytes: (bytes: number) => void): Promise<StrangerListing> {
    return this.#thread.call('list', request, { onProgress: onBytes })
  }

  close(): Promise<void> {
    return this.#thread.close()
  }
}
