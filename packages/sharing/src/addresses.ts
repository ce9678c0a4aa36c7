import { type NetworkInterfaceInfo, networkInterfaces } from 'node:os'
import { formatAddress, isLoopback, type PeerAddress } from '@svc/internal-net'

/** The addresses under which a listener on `host` can be reached; a wildcard stands for those of all interfaces. */
function reachableHosts(host: string): string[] {
  if (host !== '0.0.0.0' && host !== '::') return [host]
  const found = interfaceAddresses()
    .flatMap((addresses) => addresses ?? [])
    .filter(({ internal, family }) => !internal && family === 'IPv4')
    .map(({ address }) => address)
  return found.length > 0 ? found : ['127.0.0.1']
}

/** The addresses for another machine, and the reason if none of them can be reached. */
export interface WaysIn {
  /** `host:port` */
  readonly peers: readonly string[]
  /** Base addresses. */
  readonly webseeds: readonly string[]
  readonly note?: 'no-network' | 'loopback-only'
}

/** `peer` and `webseed` are this node's listeners. A loopback address is listed only if there is no other. */
export function waysIn(peer: PeerAddress | undefined, webseed: PeerAddress | undefined): WaysIn {
  const hostsOf = (listener: PeerAddress | undefined): PeerAddress[] =>
    listener === undefined ? [] : reachableHosts(listener.host).map((host) => ({ host, port: listener.port }))
  const [peers, webseeds] = [hostsOf(peer), hostsOf(webseed)]
  const open = [...peers, ...webseeds].filter((address) => !isLoopback(address))
  const told = (addresses: readonly PeerAddress[]): string[] =>
    addresses.filter((address) => open.length === 0 || open.includes(address)).map(formatAddress)
  const isWildcard = [peer, webseed].some((each) => each !== undefined && reachableHosts(each.host)[0] !== each.host)
  return {
    peers: told(peers),
    webseeds: told(webseeds).map((address) => `http://${address}/`),
    ...(open.length === 0 && { note: isWildcard ? 'no-network' : 'loopback-only' })
  }
}

/** Empty if the system refuses to list them, as a sandbox without netlink sockets does: sharing works without them. */
function interfaceAddresses(): (NetworkInterfaceInfo[] | undefined)[] {
  try {
    return Object.values(networkInterfaces())
  } catch {
    return []
  }
}
