// Twice each budget that the HTTP listeners have with their defaults (docs/budgets.md), in real time. Prints the results, for the table.

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterAll, expect, test } from 'vitest'
import { sharedByFile } from '../support/daemon.ts'
import { envelopeOf, rawExchange } from '../support/raw.ts'
import { MIB, Node, weights } from '../swarm/nodes.ts'

const shared = sharedByFile(async (cleanUp) => {
  const node = await Node.start({}, cleanUp)
  const share = await node.publish({ 'm-q8_0.gguf': weights(8 * MIB, 5) })
  const { webseed } = await node.addresses()
  const { files } = await node.client.open(`svc:///me/model:q8_0`)
  return {
    socketPath: node.running.socketPath,
    webseedPort: Number(new URL(webseed).port),
    webseedPath: `/${share.name}/m-q8_0.gguf`,
    digest: files.find(({ kind }) => kind === 'weights.gguf')!.digest
  }
})

const sockets: Socket[] = []
afterAll(() => {
  for (const socket of sockets) socket.destroy()
})
const seen = (what: string): void => console.log(`twice the budget: ${what}`)

async function connected(where: string | number): Promise<Socket> {
  const socket = typeof where === 'string' ? connect(where) : connect(where, '127.0.0.1')
  sockets.push(socket)
  socket.on('error', () => undefined)
  await new Promise<void>((resolve) => socket.once('connect', resolve).once('close', () => resolve()))
  return socket
}

/** Sends a request, and returns whether an answer came. Its connection may then be silent for 30 s: long enough to open all others. */
async function answered(where: string | number, request: string): Promise<boolean> {
  const socket = await connected(where)
  if (socket.destroyed) return false
  socket.write(request)
  return new Promise((resolve) => socket.once('data', () => resolve(true)).once('close', () => resolve(false)))
}

test.each([
  ['the socket', 2_048, 1_024],
  ['the webseed port', 1_024, 512]
])('connections to %s: of %i, %i stay', async (door, count, budget) => {
  const { socketPath, webseedPort, webseedPath } = await shared()
  const [where, request] =
    door === 'the socket'
      ? [socketPath, 'GET /v1/jobs HTTP/1.1\r\nHost: x\r\n\r\n']
      : [webseedPort, `HEAD ${webseedPath} HTTP/1.1\r\nHost: 127.0.0.1:${webseedPort}\r\n\r\n`]
  const first = sockets.length
  const answers: boolean[] = []
  // the backlog of a listener is shorter than that
  while (answers.length < count)
    answers.push(...(await Promise.all(Array.from({ length: 64 }, () => answered(where, request)))))
  const all = sockets.slice(first)
  const open = all.filter((socket) => !socket.destroyed).length
  for (const socket of all) socket.destroy()
  await Promise.all(all.map((socket) => socket.closed || once(socket, 'close')))
  seen(`${open} of ${count} connections to ${door} open, ${answers.filter(Boolean).length} were answered`)
  expect(answers.filter(Boolean)).toHaveLength(open)
  expect(open).toBeLessThanOrEqual(budget)
  // the client that made the model has a connection of its own
  expect(open).toBeGreaterThanOrEqual(budget - 1)
})

test.each([
  ['a header of 32 KiB', `GET /v1/jobs HTTP/1.1\r\nHost: x\r\nA: ${'x'.repeat(32_768)}\r\n\r\n`, 431],
  ['200 header fields', `GET /v1/jobs HTTP/1.1\r\nHost: x\r\n${'A: b\r\n'.repeat(200)}\r\n`, 431],
  ['a body of 2 MiB', `POST /v1/ensure HTTP/1.1\r\nHost: x\r\nContent-Length: ${2 * MIB}\r\n\r\n`, 413],
  [
    'JSON of 64 levels',
    `POST /v1/ensure HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 136\r\n\r\n{"ref":${'['.repeat(64)}${']'.repeat(64)}}`,
    400
  ]
])('%s is refused', async (what, bytes, status) => {
  const { socketPath } = await shared()
  const answer = envelopeOf(await rawExchange(socketPath, bytes))
  seen(`${what}: ${answer.status} ${answer.code}`)
  expect(answer.status).toBe(status)
})

/** Seconds until the other side ends the connection. */
async function endsAfter(socket: Socket, begun = performance.now()): Promise<number> {
  if (!socket.closed) await once(socket, 'close')
  return (performance.now() - begun) / 1_000
}

test('half a header, half a body, silence after a response and an unread blob each time out', {
  timeout: 300_000
}, async () => {
  const { socketPath, webseedPort, webseedPath, digest } = await shared()
  const after = async (where: string | number, bytes: string, reads: boolean): Promise<number> => {
    const socket = await connected(where)
    const begun = performance.now()
    socket.write(bytes)
    if (reads) socket.resume()
    else socket.pause()
    // a socket shows its end only after its data is read
    if (!reads) setTimeout(() => socket.resume(), 200_000).unref()
    const gone = endsAfter(socket, begun)
    return reads ? gone : Promise.race([gone, writeFails(socket, begun)])
  }
  /** A client that does not read notices the cut when it sends. */
  const writeFails = (socket: Socket, begun: number): Promise<number> =>
    new Promise((resolve) => {
      const timer = setInterval(() => {
        socket.write('x', (error) => {
          if (!error) return
          clearInterval(timer)
          resolve((performance.now() - begun) / 1_000)
        })
      }, 20_000)
    })
  const host = `Host: 127.0.0.1:${webseedPort}`
  const [header, body, kept, blob, webseed] = await Promise.all([
    after(socketPath, 'GET /v1/jobs HTTP/1.1\r\nHo', true),
    after(socketPath, 'POST /v1/ensure HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{', true),
    after(socketPath, 'GET /v1/jobs HTTP/1.1\r\nHost: x\r\n\r\n', true),
    after(socketPath, `GET /v1/blob/${digest} HTTP/1.1\r\nHost: x\r\n\r\n`, false),
    after(webseedPort, `GET ${webseedPath} HTTP/1.1\r\n${host}\r\n\r\n`, false)
  ])
  const rounded = [header, body, kept, blob, webseed].map((seconds) => Math.round(seconds))
  seen(
    `seconds until the end: half a header ${rounded[0]}, half a body ${rounded[1]}, silence between requests ${rounded[2]}, a blob not read ${rounded[3]}, at the webseed port ${rounded[4]}`
  )
  expect(header).toBeLessThan(10)
  expect(body).toBeLessThan(60)
  expect(kept).toBeLessThan(60)
  expect(blob).toBeLessThan(240)
  expect(webseed).toBeLessThan(240)
})
