// An engine with local discovery in a network namespace of the test, told of a peer by a datagram to this machine alone, from an address
// of another network, then by multicast. Prints the addresses that it dialled.
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { toHex, truncateInfohash } from '@svc/metainfo'
import { createFileStorage, createSwarm } from '../src/index.ts'
import { LSD_GROUPS, LSD_PORT } from '../src/wire/lsd.ts'
import { makeTorrent } from './torrent-fixture.ts'

const [own, other] = process.argv.slice(2) as [string, string]
const fixture = await makeTorrent({ a: 100_000 }, 65_536)
const called: string[] = []
const server = createServer((socket) => {
  called.push(socket.localAddress!)
  socket.on('error', () => undefined).destroy()
}).listen(0, '0.0.0.0')
await once(server, 'listening')
const swarm = await createSwarm({ lsd: true, pex: false })
swarm.add({ info: fixture.info, storage: createFileStorage(await fixture.target('leech')) })
const { port } = server.address() as AddressInfo
const infohash = toHex(truncateInfohash(fixture.info.infohash))
const datagram = `BT-SEARCH * HTTP/1.1\r\nHost: x\r\nPort: ${port}\r\nInfohash: ${infohash}\r\n\r\n\r\n`

async function from(host: string): Promise<Socket> {
  const socket = createSocket('udp4')
  socket.bind(0, host)
  await once(socket, 'listening')
  return socket
}
const [stranger, neighbour] = [await from(other), await from(own)]
neighbour.setMulticastInterface(own)
// The first datagram, if it was read at all, was read before the second
while (!called.includes(own)) {
  stranger.send(datagram, LSD_PORT, own)
  neighbour.send(datagram, LSD_PORT, LSD_GROUPS[4])
  await delay(200)
}
await delay(1_000)
process.stdout.write(`${JSON.stringify([...new Set(called)])}\n`)
for (const socket of [stranger, neighbour]) socket.close()
server.close()
await swarm.close()
await fixture.remove()
