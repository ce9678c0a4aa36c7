import type { HubAccount } from './documents.ts'
import { HubError } from './errors.ts'
import { fetchDocument, type ListingOptions } from './listing.ts'
import type { Net } from './net.ts'

/** Asks the hub whose token it is (`GET /api/whoami-v2`). Errors: see `Hub.account`. */
export async function fetchAccount(net: Net, options: ListingOptions): Promise<HubAccount> {
  const url = new URL(`${net.endpoint.base}/api/whoami-v2`)
  try {
    const of = { repoId: 'your account' }
    return (await fetchDocument(net, url, of, options, 'account', of)).value
  } catch (error) {
    if (!(error instanceof HubError)) throw error
    if (error.code === 'E_UNKNOWN_REF') return {}
    if (error.code !== 'E_SOURCE_FORBIDDEN') throw error
    const message = `${net.endpoint.origin} rejects the token; make a new one under Settings, Access Tokens`
    throw new HubError('E_SOURCE_FORBIDDEN', 'token-rejected', message, {}, error)
  }
}
