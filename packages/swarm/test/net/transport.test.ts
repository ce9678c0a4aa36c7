import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { systemClock } from '@svc/internal-clock'
import { loopBudget } from '@svc/internal-concurrency'
import { block } from '@svc/testkit/block'
import { expect, test } from 'vitest'
import { SLICE_BYTES, Transport, type TransportSink } from '../../src/net/transport.ts'

test('an expensive connection gets one slice per turn, in order, and its end last', async () => {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const sent = Buffer.from(Array.from({ length: 20 * SLICE_BYTES + 5 }, (_, at) => at % 251))
  const accepted = once(server, 'connection')
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  client.end(sent)
  const [socket] = await accepted
  const parts: Uint8Array[] = []
  let turns = 0
  let inTurn = 0
  let mostInTurn = 0
  const closed = Promise.withResolvers<void>()
  const sink: TransportSink = {
    data: (bytes) => {
      parts.push(new Uint8Array(bytes))
      if (inTurn++ === 0)
        setImmediate(() => {
          turns += 1
          inTurn = 0
        })
      mostInTurn = Math.max(mostInTurn, inTurn)
      // more than a turn has
      block(5)
    },
    closed: () => closed.resolve()
  }
  const transport = new Transport(socket, systemClock)
  transport.setSink(sink)
  socket.on('data', (bytes: Buffer) => transport.receive(bytes))
  await closed.promise
  expect(Buffer.concat(parts).equals(sent)).toBe(true)
  for (const part of parts) expect(part.length).toBeLessThanOrEqual(SLICE_BYTES)
  // one slice in the turn that reads the socket, one in its check phase
  expect(mostInTurn).toBeLessThanOrEqual(2)
  expect(turns).toBeGreaterThanOrEqual(10)
  expect(loopBudget.waiting).toBe(0)
  await new Promise<void>((resolve) => server.close(() => resolve()))
})
