import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { errnoOf } from '@svc/internal-errors'

/** Tries to find a port that is free on all addresses. */
const MAX_TRIES = 16

/** Servers on the same port of all addresses that this system has. @throws the error of `listen` */
export async function listenOnAll(
  make: () => Server,
  addresses: readonly string[],
  port: number
): Promise<readonly Server[]> {
  for (let tries = 1; ; tries++) {
    const servers: Server[] = []
    try {
      let common = port
      for (const address of addresses) {
        const server = make()
        if (!(await listens(server, common, address, servers.length > 0))) continue
        servers.push(server)
        common = (server.address() as AddressInfo).port
      }
      return servers
    } catch (error) {
      await Promise.all(servers.map(closed))
      if (port !== 0 || errnoOf(error) !== 'EADDRINUSE' || tries === MAX_TRIES) throw error
    }
  }
}

/** False for an optional address of a protocol that this system does not have. @throws the error of `listen` */
async function listens(server: Server, port: number, address: string, isOptional: boolean): Promise<boolean> {
  try {
    await once(server.listen(port, address), 'listening')
    return true
  } catch (error) {
    if (isOptional && ['EADDRNOTAVAIL', 'EAFNOSUPPORT'].includes(errnoOf(error) ?? '')) return false
    throw error
  }
}

export async function closed(server: Server): Promise<void> {
  const end = once(server.close(), 'close')
  server.closeAllConnections()
  await end
}
