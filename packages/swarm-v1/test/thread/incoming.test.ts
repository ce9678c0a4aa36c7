import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { boundIncoming, type IncomingBounds } from '../../src/thread/incoming.ts'

const sockets: Socket[] = []
let server: Server
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  await new Promise((resolve) => server.close(resolve))
})

async function listening(bounds: Partial<IncomingBounds>): Promise<{ readonly accepted: Socket[] }> {
  const accepted: Socket[] = []
  const accept = (socket: Socket): void => {
    socket.on('error', () => undefined).resume()
    accepted.push(socket)
  }
  server = createServer(accept)
  boundIncoming(server, accept, bounds)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { accepted }
}

async function dial(from: string): Promise<Socket> {
  const { port } = server.address() as AddressInfo
  const socket = connect({ port, host: '127.0.0.1', localAddress: from })
  sockets.push(socket.on('error', () => undefined).resume())
  await once(socket, 'connect')
  return socket
}

const closed = (socket: Socket): Promise<unknown> => (socket.closed ? Promise.resolve() : once(socket, 'close'))

test('a host gets its share, and can use it again after leaving', async () => {
  const { accepted } = await listening({ perHost: 2 })
  const [first] = [await dial('127.0.0.1'), await dial('127.0.0.1')]
  await closed(await dial('127.0.0.1'))
  await dial('127.0.0.2')
  await expect.poll(() => accepted.length).toBe(3)
  first.destroy()
  await closed(accepted[0]!)
  await dial('127.0.0.1')
  await expect.poll(() => accepted.length).toBe(4)
})

test('all hosts share a limit; at the limit, the oldest connection that received little makes room', async () => {
  const { accepted } = await listening({ total: 2, graceMs: 0 })
  const served = await dial('127.0.0.1')
  await expect.poll(() => accepted.length).toBe(1)
  accepted[0]!.write(Buffer.alloc(100_000))
  const idle = await dial('127.0.0.2')
  await dial('127.0.0.3')
  await closed(idle)
  expect(served.destroyed).toBe(false)
  await expect.poll(() => accepted.length).toBe(3)
})

test('no connection makes room within its grace period', async () => {
  const { accepted } = await listening({ total: 2, graceMs: 3_600_000 })
  const early = [await dial('127.0.0.1'), await dial('127.0.0.2')]
  await closed(await dial('127.0.0.3'))
  expect(early.map((socket) => socket.destroyed)).toEqual([false, false])
  expect(accepted).toHaveLength(2)
})

test('an error of the listener ends nothing', async () => {
  await listening({})
  server.emit('error', Object.assign(new Error('accept EMFILE'), { code: 'EMFILE' }))
  await dial('127.0.0.1')
  expect(server.listening).toBe(true)
})
