import { systemClock, within } from '@svc/internal-clock'
import { HttpClient, type Response } from '@svc/internal-http'
import { policyFrom } from '@svc/internal-net'
import { PublishError } from './errors.ts'
import { urlOf } from './key.ts'
import { LISTING_KEY, type Listing, MAX_LISTING_BYTES, parseListing } from './listing.ts'

const TIMEOUT_MS = 30_000
const MAX_REDIRECTS = 5

/**
 * Reads the index that svc wrote at a web address, which may be that of the folder or of the index.
 * @returns with `url` where files are read: what the index says, else the address
 * @throws PublishError `E_UNAVAILABLE`, `E_NOT_FOUND`, `E_DENIED`, `E_BAD_TARGET` for what svc did not write
 */
export async function readListing(address: string, signal?: AbortSignal): Promise<Listing & { readonly url: string }> {
  const base = new URL(/\/(?:index\.(?:json|html))?$/.test(new URL(address).pathname) ? '.' : `${address}/`, address)
  const url = new URL(urlOf(base.href, LISTING_KEY))
  const policyOf = policyFrom(base)
  const http = new HttpClient()
  try {
    const listing = await within(systemClock, TIMEOUT_MS, signal, async (stop) => {
      const hop = async (next: URL) => ({ headers: {}, policy: await policyOf(next) })
      const answer = (await http.follow(url, { signal: stop, redirects: MAX_REDIRECTS, hop })) as Response
      try {
        if (answer.status === 404)
          throw new PublishError('E_NOT_FOUND', `${base} has no ${LISTING_KEY}, which svc publish writes`)
        if (answer.status === 401 || answer.status === 403) throw new PublishError('E_DENIED', `${url} may not be read`)
        if (answer.status !== 200)
          throw new PublishError('E_UNAVAILABLE', `${url}: the server answered ${answer.status}`)
        return parseListing(await answer.bytes(MAX_LISTING_BYTES), base.href)
      } finally {
        answer.destroy()
      }
    })
    return { ...listing, url: listing.url ?? base.href }
  } catch (cause) {
    signal?.throwIfAborted()
    if (cause instanceof PublishError) throw cause
    throw new PublishError('E_UNAVAILABLE', `${url} cannot be read: ${(cause as Error).message}`, cause)
  } finally {
    await http.close()
  }
}
