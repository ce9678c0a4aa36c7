// A port that strangers may reach: one of them cannot keep the others out.
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { connect, type Socket } from 'node:net'
import { canBeAnotherUser, startGreedyUser } from '@svc/testkit/greedy-user'
import { expect, onTestFinished, test } from 'vitest'
import { createHttpServer } from '../src/server.ts'
import { Traffic } from '../src/traffic.ts'

/** Only Linux answers on all of 127.0.0.0/8. */
const onLinux = test.skipIf(process.platform !== 'linux')

interface Client {
  readonly socket: Socket
  /** Resolves when it is closed. */
  readonly closed: Promise<unknown>
  /** The first bytes of the next answer; undefined if it is closed instead. */
  ask(path: string): Promise<string | undefined>
}

async function listening(
  maxConnections: number
): Promise<{ from(host: string): Promise<Client>; readonly traffic: Traffic; readonly port: number }> {
  const traffic = new Traffic('test')
  const server = createHttpServer(
    (request, response) => {
      response.writeHead(200, { 'Content-Length': 8 })
      // two bytes of its body, and the rest never
      response.write(request.url === '/slow' ? 'sl' : 'complete')
      if (request.url !== '/slow') response.end()
    },
    { limits: { maxConnections }, isForStrangers: true, traffic }
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  })
  const { port } = server.address() as AddressInfo
  return {
    traffic,
    port,
    from: async (host) => {
      const socket = connect({ port, host: '127.0.0.1', localAddress: host })
      socket.on('error', () => undefined)
      const closed = new Promise((resolve) => socket.once('close', resolve))
      await Promise.race([once(socket, 'connect'), closed])
      return {
        socket,
        closed,
        ask: (path) => {
          socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`)
          return Promise.race([
            once(socket, 'data').then(
              ([data]) => (data as Buffer).toString('latin1', 0, 12),
              () => undefined
            ),
            closed.then(() => undefined)
          ])
        }
      }
    }
  }
}

onLinux('one that has taken all connections gives up its idle ones first, then its slowest, to another', async () => {
  const { from, traffic } = await listening(4)
  const slow = await from('127.0.0.1')
  expect(await slow.ask('/slow')).toBe('HTTP/1.1 200')
  const idle = await from('127.0.0.1')
  expect(await idle.ask('/')).toBe('HTTP/1.1 200')
  const silent = await from('127.0.0.1')
  const half = await from('127.0.0.1')
  half.socket.write('GET / HT')
  // it has its share already: all of it
  await (await from('127.0.0.1')).closed

  const other = await from('127.0.0.2')
  await idle.closed
  expect(await other.ask('/slow')).toBe('HTTP/1.1 200')
  const second = await from('127.0.0.2')
  await silent.closed
  expect(await second.ask('/')).toBe('HTTP/1.1 200')
  // two each
  await (await from('127.0.0.2')).closed
  expect(slow.socket.destroyed).toBe(false)

  const last = await from('127.0.0.3')
  expect(await last.ask('/')).toBe('HTTP/1.1 200')
  await Promise.race([half, other, second].map(({ closed }) => closed))
  expect([slow, half, other, second].filter(({ socket }) => socket.destroyed)).toHaveLength(1)
  expect(slow.socket.destroyed).toBe(false)
  expect(traffic.figures()).toMatchObject({ connections: 4, maxConnections: 4, refused: 5 })
})

onLinux('of connections that all have a request, the one that takes the fewest bytes goes', async () => {
  const { from } = await listening(3)
  const [first, slowest, third] = await Promise.all([1, 2, 3].map(() => from('127.0.0.1')))
  for (const client of [first!, third!]) for (let i = 0; i < 20; i++) expect(await client.ask('/')).toBe('HTTP/1.1 200')
  for (const client of [first!, slowest!, third!]) expect(await client.ask('/slow')).toBe('HTTP/1.1 200')
  const other = await from('127.0.0.2')
  await slowest!.closed
  expect(await other.ask('/')).toBe('HTTP/1.1 200')
  expect([first, third].some((client) => client!.socket.destroyed)).toBe(false)
})

onLinux('one that sends no more goes first, also for another of the same host', async () => {
  const { from } = await listening(2)
  const [first, left] = await Promise.all([1, 2].map(() => from('127.0.0.1')))
  for (const client of [first!, left!]) expect(await client.ask('/slow')).toBe('HTTP/1.1 200')
  await (await from('127.0.0.1')).closed
  left!.socket.end()
  let another: Client
  // its end may arrive later than a connection that is begun after it
  do another = await from('127.0.0.1')
  while ((await another.ask('/')) === undefined)
  await left!.closed
  expect(first!.socket.destroyed).toBe(false)
})

test.skipIf(!canBeAnotherUser)(
  'a user with many addresses of this machine keeps no connection from another user (needs root)',
  async () => {
    const { from, port } = await listening(16)
    const greed = { connections: 64, addresses: 64, pauseMs: 100 }
    onTestFinished(await startGreedyUser([{ host: '127.0.0.1', port }], greed))
    const held: Client[] = []
    // half of all, however fast the other one comes back
    for (let i = 0; i < 8; i++) {
      held.push(await from('127.0.0.1'))
      expect(await held[i]!.ask('/')).toBe('HTTP/1.1 200')
    }
    // one more has no share, as is found out in a moment; the others have their places by then
    await (await from('127.0.0.1')).closed
    for (const client of held) expect(await client.ask('/')).toBe('HTTP/1.1 200')
  }
)
