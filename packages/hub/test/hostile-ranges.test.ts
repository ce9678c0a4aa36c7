// A range thread and servers that want it to take wrong bytes, to write elsewhere, to wait for ever or to end. In each case it writes
// nothing outside of the range, says what it was, and fetches the next range as if nothing had been.
import { once } from 'node:events'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Answer, BODY, CONTENT, END, GOOD, HostileRanges, headOf, SIZE_BYTES, START } from './hostile-ranges.ts'

const STALL_MS = 400
const LENGTH = END - START

/** Writes these one after the other, each in a packet of its own where the machine lets it. */
const say =
  (...parts: readonly (string | Uint8Array)[]): Answer =>
  (socket) => {
    for (const part of parts) socket.write(part)
  }
/** Again and again until the connection is gone. */
const endless =
  (first: string, rest: string, everyMs = 20): Answer =>
  (socket) => {
    socket.write(first)
    const timer = setInterval(() => socket.write(rest), everyMs)
    socket.on('close', () => clearInterval(timer))
  }
/** The right bytes, one now and then, without end as far as a test can see. */
const drip: Answer = (socket) => {
  let at = headOf().length
  socket.write(GOOD.subarray(0, at))
  const timer = setInterval(() => socket.write(GOOD.subarray(at, ++at)), 20)
  socket.on('close', () => clearInterval(timer))
}
const range = (text: string, length: number | string = LENGTH, more = ''): string =>
  `HTTP/1.1 206 Partial Content\r\nContent-Range: ${text}\r\nContent-Length: ${length}\r\n${more}\r\n`
const own = `bytes ${START}-${END - 1}/${SIZE_BYTES}`

/** Name, what the server does, what the thread says, and how many of its bytes may be kept: they are what the file has there. */
const CASES: readonly (readonly [name: string, answer: Answer, reply: string, mostBytes: number])[] = [
  [
    'the range of its neighbour',
    say(range(`bytes 0-${LENGTH - 1}/${SIZE_BYTES}`), CONTENT.subarray(0, LENGTH)),
    'form',
    0
  ],
  ['more than was asked for', say(range(`bytes ${START}-${END}/${SIZE_BYTES}`, LENGTH + 1), BODY, 'x'), 'form', 0],
  ['another total', say(range(`bytes ${START}-${END - 1}/${SIZE_BYTES + 1}`), BODY), 'form', 0],
  ['a range that ends before it begins', say(range(`bytes ${START}-${START - 1}/${SIZE_BYTES}`, 0)), 'form', 0],
  ['a negative range', say(range(`bytes -1-${END - 1}/${SIZE_BYTES}`), BODY), 'form', 0],
  ['a range beyond all numbers', say(range(`bytes ${START}-${'9'.repeat(30)}/${SIZE_BYTES}`), BODY), 'form', 0],
  ['no range', say(`HTTP/1.1 206 OK\r\nContent-Length: ${LENGTH}\r\n\r\n`, BODY), 'form', 0],
  ['several ranges', say(range(own, LENGTH, 'Content-Type: multipart/byteranges; boundary=x\r\n'), BODY), 'form', 0],
  ['a shorter length than its range', say(range(own, LENGTH - 1), BODY), 'form', 0],
  ['a longer length than its range', say(range(own, LENGTH + 1), BODY), 'form', 0],
  ['two lengths', say(headOf(`Content-Length: ${LENGTH}\r\n`), BODY), 'form', 0],
  ['a negative length', say(range(own, `-${LENGTH}`), BODY), 'form', 0],
  ['a length with a sign', say(range(own, `+${LENGTH}`), BODY), 'form', 0],
  ['a length in a list', say(range(own, `${LENGTH}, ${LENGTH}`), BODY), 'form', 0],
  ['a length and chunks', say(headOf('Transfer-Encoding: chunked\r\n'), `${LENGTH.toString(16)}\r\n`, BODY), 'form', 0],
  ['compressed bytes', say(headOf('Content-Encoding: gzip\r\n'), BODY), 'form', 0],
  ['a folded header', say(headOf('A: b\r\n c\r\n'), BODY), 'form', 0],
  [
    'bare line feeds',
    say(GOOD.toString('latin1').split('\r\n\r\n', 1)[0]!.replaceAll('\r\n', '\n'), '\n\n', BODY),
    'form',
    0
  ],
  ['a line feed in a header', say(headOf('A: b\nContent-Length: 5\r\n'), BODY), 'form', 0],
  ['a carriage return in a header', say(headOf('A: b\rc\r\n'), BODY), 'form', 0],
  ['NUL in a header', say(headOf('A: \0\r\n'), BODY), 'form', 0],
  ['a space before the colon', say(headOf('Content-Encoding : gzip\r\n'), BODY), 'form', 0],
  ['a header without a name', say(headOf(': x\r\n'), BODY), 'form', 0],
  ['HTTP/1.0', say(headOf().replace('1.1', '1.0'), BODY), 'form', 0],
  ['no HTTP', say('220 mail.example ESMTP\r\n\r\n', BODY), 'form', 0],
  ['a change of protocol', say(headOf('Connection: upgrade\r\nUpgrade: websocket\r\n'), BODY), 'form', 0],
  ['101 headers', say(headOf('A: b\r\n'.repeat(101)), BODY), 'form', 0],
  ['a head of a megabyte', say(headOf(`A: ${'b'.repeat(1 << 20)}\r\n`), BODY), 'form', 0],
  ['headers without end', endless(headOf().slice(0, -2), 'A: b\r\n'), 'ERR_STALLED', 0],
  ['an interim answer', say('HTTP/1.1 103 Early Hints\r\n\r\n', GOOD), 'status', 0],
  ['interim answers without end', endless('', 'HTTP/1.1 103 Early Hints\r\n\r\n'), 'status', 0],
  ['a redirect', say('HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\n\r\n'), 'status', 0],
  ['all of the file', say(`HTTP/1.1 200 OK\r\nContent-Length: ${SIZE_BYTES}\r\n\r\n`, CONTENT), 'status', 0],
  ['nothing', () => undefined, 'ERR_STALLED', 0],
  ['an end at once', (socket) => void socket.end(), 'ECONNRESET', 0],
  ['a reset at once', (socket) => void socket.resetAndDestroy(), 'ECONNRESET', 0],
  ['an end in the head', (socket) => void socket.end(headOf().slice(0, 50)), 'ECONNRESET', 0],
  ['an end in the body', (socket) => void socket.end(GOOD.subarray(0, -1)), 'ECONNRESET', LENGTH - 1],
  [
    'a reset in the body',
    (socket) => void socket.write(GOOD.subarray(0, 50_000), () => socket.resetAndDestroy()),
    'ECONNRESET',
    50_000
  ],
  ['silence in the body', say(GOOD.subarray(0, 50_000)), 'ERR_STALLED', 50_000],
  ['a drip in the body', drip, 'ERR_SLOW', LENGTH]
]

let ranges: HostileRanges
beforeAll(async () => {
  ranges = await HostileRanges.start()
})
afterAll(() => ranges.close())

async function expectGood(): Promise<void> {
  const good = { reply: 'done', writtenTo: END, isRight: true, isOutsideUntouched: true }
  expect(await ranges.ask(say(GOOD))).toEqual(good)
}

test.each(CASES)('%s', async (_, answer, reply, mostBytes) => {
  // a connection that is used again says the same as a new one
  for (let n = 0; n < 2; n++) {
    const limits = { ERR_STALLED: { stallMs: STALL_MS }, ERR_SLOW: { slowMs: STALL_MS } }
    const outcome = await ranges.ask(answer, limits[reply as keyof typeof limits])
    expect(outcome).toMatchObject({ reply, isRight: true, isOutsideUntouched: true })
    expect(outcome.writtenTo - START).toBeLessThanOrEqual(mostBytes)
    await expectGood()
  }
})

test('bodies that arrive byte by byte, split anywhere, or as half the requested range are correct', async () => {
  const half = Math.ceil(LENGTH / 2)
  const cuts: readonly Answer[] = [
    (socket) => {
      socket.setNoDelay(true)
      for (let at = 0; at < 400; at++) socket.write(GOOD.subarray(at, at + 1))
      socket.write(GOOD.subarray(400))
    },
    ...[1, 17, headOf().length - 1, headOf().length, headOf().length + 1].map(
      (at): Answer => say(GOOD.subarray(0, at), GOOD.subarray(at))
    )
  ]
  for (const cut of cuts) expect(await ranges.ask(cut)).toMatchObject({ reply: 'done', writtenTo: END, isRight: true })
  const part = await ranges.ask(say(headOf('', half), BODY.subarray(0, half)))
  expect(part).toEqual({ reply: 'done', writtenTo: START + half, isRight: true, isOutsideUntouched: true })
})

test('bytes that follow a body are not part of it', async () => {
  // refused where they come with the last bytes; else the connection ends with the answer
  const outcome = await ranges.ask(say(Buffer.concat([GOOD, Buffer.from('HTTP/1.1 206')])))
  expect(outcome).toMatchObject({
    reply: expect.toBeOneOf(['done', 'HPE_UNEXPECTED']),
    isRight: true,
    isOutsideUntouched: true
  })
  await expectGood()
})

test('unsolicited bytes close the connection, and are not part of the next answer', async () => {
  let closed: Promise<unknown> | undefined
  const outcome = await ranges.ask((socket) => {
    socket.write(GOOD)
    closed = once(socket, 'close')
    setImmediate(() => socket.write(`${headOf()}${'x'.repeat(1_000)}`))
  })
  expect(outcome).toMatchObject({ reply: 'done', isRight: true, isOutsideUntouched: true })
  await closed
  await expectGood()
})
