import { randomBytes, randomInt } from 'node:crypto'
import { lookup } from 'node:dns/promises'
import type { Clock } from '@svc/internal-clock'

/** The host in the address of a page, and the addresses that browsers may take it for. */
export interface PageHost {
  readonly name: string
  readonly addresses: readonly string[]
}

export type Resolve = (name: string, clock: Clock) => Promise<readonly string[]>

const LATE_MS = 1_000
/** What `localhost` means: whoever listens on only one of them leaves the other to anybody. */
const LOOPBACK = ['127.0.0.1', '::1']
/** May have belonged to anybody before. */
export const SHARED_HOST: PageHost = { name: '127.0.0.1', addresses: ['127.0.0.1'] }

/**
 * Hosts for a page, the best first. A browser keeps what an origin left in it: workers, caches. So the page gets an
 * origin that has never been: a name below `localhost`, or where the system does not resolve it, an address of
 * 127.0.0.0/8, which not every system has; `kept` is that of an earlier run. Browsers for the desktop resolve the name themselves, so it serves
 * the browser of another machine.
 */
export async function pageHosts(
  isBrowserHere: boolean,
  clock: Clock,
  { resolve = resolveHere, kept }: { readonly resolve?: Resolve | undefined; readonly kept?: string | undefined } = {}
): Promise<readonly PageHost[]> {
  if (kept !== undefined) return [{ name: kept, addresses: kept.endsWith('.localhost') ? LOOPBACK : [kept] }]
  const name = `${randomBytes(16).toString('hex')}.localhost`
  const named: PageHost = { name, addresses: LOOPBACK }
  if (!isBrowserHere) return [named]
  const found = await resolve(name, clock)
  if (found.length > 0 && found.every((address) => LOOPBACK.includes(address))) return [named]
  const address = `127.${randomInt(1, 255)}.${randomInt(1, 255)}.${randomInt(1, 255)}`
  return [{ name: address, addresses: [address] }, SHARED_HOST]
}

/** What programs on this machine take a name for; nothing if that takes long. */
function resolveHere(name: string, clock: Clock): Promise<readonly string[]> {
  return new Promise((resolve) => {
    const timer = clock.after(LATE_MS, () => resolve([]))
    lookup(name, { all: true })
      .then(
        (found) => resolve(found.map(({ address }) => address)),
        () => resolve([])
      )
      .finally(() => timer.cancel())
  })
}
