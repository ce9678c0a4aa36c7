import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { encodeBencode } from '@svc/metainfo'
import { expect, onTestFinished, test } from 'vitest'
import { CheckedSocket } from '../src/checked-socket.ts'

const query = Buffer.from(encodeBencode({ t: 'aa', y: 'q', q: 'ping', a: { id: Buffer.alloc(20) } }))
const answer = Buffer.from(encodeBencode({ t: 'aa', y: 'r', r: { id: Buffer.alloc(20) } }))

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

test('twice as many datagrams as one address may send: the rest is dropped, and another address does not notice', async () => {
  const socket = await listening()
  const heard = new Map<string, number[]>()
  socket.on('message', (_, { address }: { address: string }) => {
    const times = heard.get(address) ?? []
    heard.set(address, times)
    times.push(Math.floor(performance.now() / 1_000))
  })
  const [loud, quiet] = await Promise.all([strangerAt('127.0.0.1'), strangerAt('127.0.0.2')])
  const { port } = socket.address()
  const before = Math.floor(performance.now() / 1_000)
  for (let i = 0; i < 100; i++) loud.send(query, port, '127.0.0.1')
  quiet.send(query, port, '127.0.0.1')
  while (heard.get('127.0.0.2') === undefined || (heard.get('127.0.0.1')?.length ?? 0) + socket.refused < 100)
    await new Promise((resolve) => setImmediate(resolve))
  const seconds = Math.floor(performance.now() / 1_000) - before + 1
  expect(heard.get('127.0.0.1')!.length).toBeLessThanOrEqual(50 * seconds)
  expect(
    Math.max(...[...Map.groupBy(heard.get('127.0.0.1')!, (second) => second).values()].map((each) => each.length))
  ).toBe(50)
})

test('more than all strangers together may send is dropped', async () => {
  const socket = await listening({ perAddress: 10, total: 25 })
  let heard = 0
  socket.on('message', () => (heard += 1))
  const { port } = socket.address()
  const before = Math.floor(performance.now() / 1_000)
  for (const host of ['127.0.0.3', '127.0.0.4', '127.0.0.5', '127.0.0.6', '127.0.0.7']) {
    const stranger = await strangerAt(host)
    for (let i = 0; i < 10; i++) stranger.send(query, port, '127.0.0.1')
  }
  while (heard + socket.refused < 50) await new Promise((resolve) => setImmediate(resolve))
  expect(heard).toBeLessThanOrEqual(25 * (Math.floor(performance.now() / 1_000) - before + 1))
})

test('a flood takes nothing from a node that was asked', async () => {
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
  while (heard.length + socket.refused < 101) await new Promise((resolve) => setImmediate(resolve))
  expect([heard, socket.refused]).toEqual([['127.0.0.8'], 100])
})

test('twice as many queries of our own as may leave in a second: the rest waits, answers do not', async () => {
  const socket = await listening()
  const node = await strangerAt('127.0.0.1')
  const { port } = node.address()
  const queries: number[] = []
  const answers: number[] = []
  node.on('message', (bytes) => void (bytes.includes('1:y1:q') ? queries : answers).push(performance.now()))
  const begun = performance.now()
  for (let i = 0; i < 40; i++) socket.send(query, 0, query.length, port, '127.0.0.1', () => undefined)
  for (let i = 0; i < 40; i++) socket.send(answer, 0, answer.length, port, '127.0.0.1', () => undefined)
  while (queries.length < 40 || answers.length < 40) await new Promise((resolve) => setImmediate(resolve))
  // the first ones may fall into the end of a second
  expect(queries.at(-1)! - begun).toBeGreaterThan(20)
  expect(queries.filter((at) => at - begun < 5).length).toBeLessThanOrEqual(40)
  expect(answers[39]!).toBeLessThan(queries[39]!)
})

test('queries that find too many waiting fail', async () => {
  const socket = await listening({ own: 0 })
  let failed = 0
  for (let i = 0; i < 2_000; i++)
    socket.send(query, 0, query.length, 9, '127.0.0.1', (error) => (failed += error ? 1 : 0))
  await new Promise((resolve) => setImmediate(resolve))
  expect(failed).toBe(1_000)
})

test('a node at port 0 is an error of that query, and nothing else', async () => {
  const socket = await listening()
  const failed = await new Promise<Error | null>((done) => socket.send(query, 0, query.length, 0, '127.0.0.1', done))
  expect(failed).toBeInstanceOf(RangeError)
  const node = await strangerAt('127.0.0.10')
  const asked = once(node, 'message')
  socket.send(query, 0, query.length, node.address().port, '127.0.0.10', () => undefined)
  await asked
})
