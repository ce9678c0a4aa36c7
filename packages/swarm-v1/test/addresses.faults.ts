// Twice the addresses that a torrent may remember (docs/budgets.md), from trackers and by peer exchange, of hosts of this machine.
// What was seen is printed, for the table.

import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { encodeBencode } from '@svc/metainfo'
import { V1Swarm } from '@svc/swarm-v1'
import { expect, onTestFinished, test } from 'vitest'
import { handshake, INFO, INFOHASH, message } from './torrent-fixture.ts'

const BUDGET = 2_000
const TOLD = 2 * BUDGET

/** Takes connections at each address of this machine, says nothing, and counts at which it was called. */
async function everywhere(): Promise<{
  readonly port: number
  readonly calls: Map<string, number>
  /** What is open is closed, and what comes as well. */
  readonly close: () => void
}> {
  const calls = new Map<string, number>()
  const open = new Set<Socket>()
  let closes = false
  const server = createServer((socket) => {
    const host = socket.localAddress!
    calls.set(host, (calls.get(host) ?? 0) + 1)
    open.add(socket)
    socket.on('error', () => undefined).on('close', () => open.delete(socket))
    if (closes) socket.destroy()
  }).listen(0, '0.0.0.0')
  await once(server, 'listening')
  const close = (): void => {
    closes = true
    for (const socket of open) socket.destroy()
  }
  onTestFinished(() => {
    close()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, calls, close }
}

const hostOf = (index: number): readonly number[] => [127, 1, index >> 8, index & 0xff]
const compact = (from: number, count: number, port: number): Buffer =>
  Buffer.concat(Array.from({ length: count }, (_, i) => Buffer.from([...hostOf(from + i), port >> 8, port & 0xff])))

/** A leech that knows the layout and nobody who has anything. */
async function leech(trackers: readonly string[], peers: readonly string[] = []): Promise<V1Swarm> {
  const faults: string[] = []
  const swarm = await V1Swarm.start({
    peerAddress: { host: '127.0.0.1', port: 0 },
    dht: [],
    policy: 'machine',
    uploadLimitBytesPerSecond: 0,
    onFault: ({ error }) => void faults.push(String(error.stack))
  })
  onTestFinished(() => swarm.close())
  const torrent = swarm.join({
    infohash: INFOHASH,
    info: INFO,
    trackers,
    peers,
    metadataTimeoutMs: 600_000,
    open: async () => ({ has: () => false, read: async () => undefined, write: async () => undefined })
  })
  await torrent.ready
  onTestFinished(() => expect(faults).toEqual([]))
  return swarm
}

/** Each that is remembered is tried again after a second: once all were, nobody else is waiting in the queue. */
async function triedTwice(calls: ReadonlyMap<string, number>): Promise<number> {
  await expect
    .poll(() => calls.size >= BUDGET / 2 && [...calls.values()].every((count) => count >= 2), {
      timeout: 600_000,
      interval: 250
    })
    .toBe(true)
  return calls.size
}

test('trackers name 4,000 addresses: 2,000 are remembered', async () => {
  const { port, calls, close } = await everywhere()
  let answered = 0
  const tracker = createHttpServer((request, response) => {
    const nth = Number(/^\/(\d+)/.exec(request.url!)![1])
    response.end(encodeBencode({ interval: 3_600, peers: compact(nth * 200, 200, port) }))
    response.on('close', () => {
      answered++
    })
  }).listen(0, '127.0.0.1')
  await once(tracker, 'listening')
  onTestFinished(() => void tracker.close())
  const { port: at } = tracker.address() as AddressInfo
  await leech(Array.from({ length: TOLD / 200 }, (_, nth) => `http://127.0.0.1:${at}/${nth}`))
  // while as many connections as may be are taken, the others wait
  await expect.poll(() => answered, { timeout: 60_000 }).toBe(TOLD / 200)
  close()
  const remembered = await triedTwice(calls)
  console.log(`twice the budget: of ${TOLD} addresses of trackers ${remembered} were dialled`)
  expect(remembered).toBeLessThanOrEqual(BUDGET)
  expect(remembered).toBeGreaterThan(BUDGET * 0.9)
})

/** Names 500 addresses, and waits for the answer to a request behind them. */
async function tells(port: number, from: number, of: number): Promise<void> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => undefined)
  onTestFinished(() => void socket.destroy())
  let text = ''
  const heard = (what: string): Promise<void> =>
    new Promise((resolve) =>
      socket.on('data', (bytes) => {
        text += bytes.toString('latin1')
        if (text.includes(what)) resolve()
      })
    )
  socket.write(handshake())
  await heard('lt_donthave')
  const extended = (id: number, value: unknown): Buffer =>
    message(20, Buffer.concat([Buffer.from([id]), encodeBencode(value as never)]))
  const idOf = (name: string): number => Number(new RegExp(`${name}i(\\d+)e`).exec(text)![1])
  socket.write(extended(0, { m: { ut_metadata: 3, ut_pex: 4 } }))
  socket.write(extended(idOf('ut_pex'), { added: compact(from, 500, of), 'added.f': Buffer.alloc(500) }))
  socket.write(extended(idOf('ut_metadata'), { msg_type: 0, piece: 0 }))
  await heard('8:msg_type')
}

test("peers name 4,000 addresses that fail at once: 2,000 are remembered, and the user's are still dialled", async () => {
  const { port, calls, close } = await everywhere()
  close()
  const swarm = await leech([])
  const telling = Array.from({ length: TOLD / 500 }, (_, nth) => tells(swarm.address.port, nth * 500, port))
  await Promise.all(telling)
  // a list that is full keeps nobody out whom the user names
  const named = await everywhere()
  for (const torrent of swarm.torrents) torrent.addPeer(`127.0.0.1:${named.port}`)
  const remembered = await triedTwice(calls)
  console.log(`twice the budget: of ${TOLD} addresses of peers ${remembered} were dialled`)
  expect(remembered).toBeLessThanOrEqual(BUDGET)
  expect(remembered).toBeGreaterThan(BUDGET * 0.9)
  await expect.poll(() => named.calls.size, { timeout: 60_000 }).toBe(1)
})
