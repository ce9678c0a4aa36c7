import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { systemClock } from '@svc/internal-clock'
import { expect, test } from 'vitest'
import { ReadTurns, readTurns, SLICE_BYTES, type TurnReader } from '../../src/net/read-turns.ts'
import { Transport, type TransportSink } from '../../src/net/transport.ts'

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('what is over the time of a turn goes on in later ones, each reader a slice, one after another', async () => {
  // any work is more than a turn has
  const turns = new ReadTurns(Number.MIN_VALUE)
  const done: string[] = []
  const reader = (name: string, slices: number): TurnReader => ({
    readHeld: () => {
      const until = performance.now()
      while (performance.now() === until) {}
      done.push(name)
      slices -= 1
      return slices > 0
    }
  })
  for (const each of [reader('a', 3), reader('b', 1), reader('c', 2)]) turns.wait(each)
  const gone = reader('d', 9)
  turns.wait(gone)
  turns.leave(gone)
  const counts: number[] = []
  while (turns.waiting > 0) {
    await turn()
    counts.push(done.length)
  }
  expect(done).toEqual(['a', 'b', 'c', 'a', 'c', 'a'])
  expect(counts.slice(0, 6)).toEqual([1, 2, 3, 4, 5, 6])
})

test('time of a turn is over once it is spent, and comes back with the next, also when the work throws', async () => {
  const turns = new ReadTurns(1)
  const spend = (): void => {
    const until = performance.now() + 2
    while (performance.now() < until) {}
    throw new Error('work that fails')
  }
  expect(() => turns.run(spend)).toThrow('work that fails')
  expect(turns.isOver).toBe(true)
  await turn()
  expect(turns.isOver).toBe(false)
})

test('a connection whose bytes cost much gets one slice in a turn, all of them in order, and its end after them', async () => {
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
      const until = performance.now() + 5
      while (performance.now() < until) {}
    },
    closed: () => closed.resolve()
  }
  const transport = new Transport(socket, sink, systemClock)
  socket.on('data', (bytes: Buffer) => transport.receive(bytes))
  await closed.promise
  expect(Buffer.concat(parts).equals(sent)).toBe(true)
  for (const part of parts) expect(part.length).toBeLessThanOrEqual(SLICE_BYTES)
  // one slice in the turn that reads the socket, one in its check phase
  expect(mostInTurn).toBeLessThanOrEqual(2)
  expect(turns).toBeGreaterThanOrEqual(10)
  expect(readTurns.waiting).toBe(0)
  await new Promise<void>((resolve) => server.close(() => resolve()))
})
