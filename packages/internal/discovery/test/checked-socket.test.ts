import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { encodeBencode } from '@svc/metainfo'
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { CheckedSocket } from '../src/checked-socket.ts'

const query = Buffer.from(encodeBencode({ t: 'aa', y: 'q', q: 'ping', a: { id: Buffer.alloc(20) } }))
const answer = Buffer.from(encodeBencode({ t: 'aa', y: 'r', r: { id: Buffer.alloc(20) } }))

// A clock that stands still unless it is told: a second may end between any two datagrams.
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance', 'setInterval', 'clearInterval'] })
  onTestFinished(() => void vi.useRealTimers())
})

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

async function strangerAt(host: string): Promise<Socket> {
  const socket = createSocket('udp4')
  socket.bind(0, host)
  await once(socket, 'listening')
  onTestFinished(() => void socket.close())
  return socket
}

async function listening(limits?: ConstructorParameters<typeof CheckedSocket>[1]) {
  const socket = new CheckedSocket((datagram) => datagram, limits)
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve))
  onTestFinished(() => socket.close())
  return socket
}

test('an address that sends twice its share has the rest dropped, without effect on another address', async () => {
  const socket = await listening()
  const heard: string[] = []
  socket.on('message', (_, { address }: { address: string }) => void heard.push(address))
  const [loud, quiet] = await Promise.all([strangerAt('127.0.0.1'), strangerAt('127.0.0.2')])
  const { port } = socket.address()
  const from = (host: string): number => heard.filter((address) => address === host).length
  for (let second = 1; second <= 2; second++) {
    for (let i = 0; i < 100; i++) loud.send(query, port, '127.0.0.1')
    quiet.send(query, port, '127.0.0.1')
    while (heard.length + socket.refused < 101 * second) await turn()
    expect([from('127.0.0.1'), from('127.0.0.2')]).toEqual([50 * second, second])
    vi.advanceTimersByTime(1_000)
  }
})

test('datagrams beyond the total limit for strangers are dropped', async () => {
  const socket = await listening({ perAddress: 10, total: 25 })
  let heard = 0
  socket.on('message', () => (heard += 1))
  const { port } = socket.address()
  for (const host of ['127.0.0.3', '127.0.0.4', '127.0.0.5', '127.0.0.6', '127.0.0.7']) {
    const stranger = await strangerAt(host)
    for (let i = 0; i < 10; i++) stranger.send(query, port, '127.0.0.1')
  }
  while (heard + socket.refused < 50) await turn()
  expect(heard).toBe(25)
})

test('a flood does not affect answers of queried nodes', async () => {
  const socket = await listening({ total: 0 })
  const [node, stranger] = await Promise.all([strangerAt('127.0.0.8'), strangerAt('127.0.0.9')])
  const heard: string[] = []
  socket.on('message', (_, { address }: { address: string }) => void heard.push(address))
  const { port } = socket.address()
  const asked = once(node, 'message')
  socket.send(query, 0, query.length, node.address().port, '127.0.0.8', () => undefined)
  await asked
  for (let i = 0; i < 100; i++) stranger.send(answer, port, '127.0.0.1')
  node.send(answer, port, '127.0.0.1')
  while (heard.length + socket.refused < 101) await turn()
  expect([heard, socket.refused]).toEqual([['127.0.0.8'], 100])
})

test('own queries beyond the limit per second wait; answers do not', async () => {
  const socket = await listening()
  const node = await strangerAt('127.0.0.1')
  const { port } = node.address()
  let queries = 0
  let answers = 0
  node.on('message', (bytes) => void (bytes.includes('1:y1:q') ? (queries += 1) : (answers += 1)))
  for (let i = 0; i < 40; i++) socket.send(query, 0, query.length, port, '127.0.0.1', () => undefined)
  socket.on('message', () => socket.send(answer, 0, answer.length, port, '127.0.0.1', () => undefined))
  for (let i = 0; i < 40; i++) node.send(query, socket.address().port, '127.0.0.1')
  // the answers leave behind all queries that may; on two cores datagrams may overtake each other
  while (answers < 40 || queries < 20) await turn()
  expect(queries).toBe(20)
  vi.advanceTimersByTime(1_000)
  while (queries < 40) await turn()
})

test('queries fail if too many are waiting', async () => {
  const socket = await listening({ own: 0 })
  let failed = 0
  for (let i = 0; i < 2_000; i++)
    socket.send(query, 0, query.length, 9, '127.0.0.1', (error) => (failed += error ? 1 : 0))
  await turn()
  expect(failed).toBe(1_000)
})

test('a node at port 0 fails only its own query', async () => {
  const socket = await listening()
  const failed = await new Promise<Error | null>((done) => socket.send(query, 0, query.length, 0, '127.0.0.1', done))
  expect(failed).toBeInstanceOf(RangeError)
  const node = await strangerAt('127.0.0.10')
  const asked = once(node, 'message')
  socket.send(query, 0, query.length, node.address().port, '127.0.0.10', () => undefined)
  await asked
})

test('an answer is sent only below three times its query, and only to a query', async () => {
  const socket = await listening()
  const node = await strangerAt('127.0.0.1')
  const { port } = node.address()
  const padded = (bytes: number): Buffer => {
    const r = { id: Buffer.alloc(20), token: Buffer.alloc(bytes) }
    return Buffer.from(encodeBencode({ t: 'aa', y: 'r', r }))
  }
  const lengths: number[] = []
  node.on('message', ({ length }) => void lengths.push(length))
  const send = (bytes: Buffer): Promise<Error | null> =>
    new Promise((done) => socket.send(bytes, 0, bytes.length, port, '127.0.0.1', done))
  expect(await send(answer)).toBeInstanceOf(Error)
  const overhead = padded(100).length - 100
  const longest = padded(3 * query.length - 1 - overhead)
  const sent = new Promise<readonly (Error | null)[]>((done) =>
    socket.on('message', () => done(Promise.all([send(padded(longest.length + 1 - overhead)), send(longest)])))
  )
  node.send(query, socket.address().port, '127.0.0.1')
  expect(await sent).toEqual([expect.any(Error), null])
  while (lengths.length === 0) await turn()
  expect(lengths).toEqual([3 * query.length - 1])
})
