import type { ReadAt } from '@svc/classify'
import type { Hub, HubFile } from '@svc/hub'

/** Bytes per request: most headers fit in one. */
const STEP_BYTES = 512 * 1024
/** Limit of bytes fetched of one file, above that of a GGUF's identity. */
const MAX_BYTES = 26 * 2 ** 20

/** A file's header is larger than a plan fetches. */
export class HeaderTooLarge extends Error {
  override readonly name = 'HeaderTooLarge'
}

/** Random access to the start of a remote file, fetched in steps. @throws HeaderTooLarge */
export function windowOf(hub: Pick<Hub, 'read'>, file: HubFile, signal: AbortSignal): ReadAt {
  let start = 0
  let held: Uint8Array = new Uint8Array(0)
  let fetched = 0
  return async (offset, lengthBytes) => {
    const end = Math.min(file.sizeBytes, offset + lengthBytes)
    if (offset >= end) return new Uint8Array(0)
    if (offset < start || end > start + held.length) {
      const to = Math.min(file.sizeBytes, offset + Math.max(lengthBytes, STEP_BYTES))
      fetched += to - offset
      if (fetched > MAX_BYTES) throw new HeaderTooLarge(file.path)
      held = await hub.read(file, { start: offset, end: to }, { signal })
      start = offset
    }
    return held.subarray(offset - start, end - start)
  }
}
