// Answers with changed heads, by the thousand (`SVC_HOSTILE_RANGES`): whatever a range thread makes of one, it writes nothing outside of
// the range, comes to an end, and fetches the next range.
import { mutateBytes, randomFrom } from '@svc/testkit/mutate'
import { expect, onTestFinished, test } from 'vitest'
import { BODY, END, GOOD, HostileRanges, headOf, START } from './hostile-ranges.ts'

const COUNT = Number(process.env.SVC_HOSTILE_RANGES ?? 20_000)
const SEED = Number(process.env.SVC_FUZZ_SEED ?? 7)
const REPLIES = ['done', 'status', 'form', 'ECONNRESET', 'HPE_UNEXPECTED']

test(`${COUNT} changed heads`, { timeout: 3_600_000 }, async () => {
  const ranges = await HostileRanges.start()
  onTestFinished(() => ranges.close())
  const random = randomFrom(SEED)
  const seen: Record<string, number> = {}
  for (let n = 1; n <= COUNT; n++) {
    const more = ['', 'Connection: close\r\n', 'ETag: "x"\r\n', 'Content-Encoding: identity\r\n'][random(4)]
    const head = mutateBytes(random, Buffer.from(headOf(more)))
    // the server has said all: what is not there by then does not come
    const outcome = await ranges.ask((socket) => void socket.end(Buffer.concat([head, BODY])))
    expect([n, outcome]).toEqual([
      n,
      expect.objectContaining({ reply: expect.toBeOneOf(REPLIES), isOutsideUntouched: true })
    ])
    expect(outcome.writtenTo).toBeGreaterThanOrEqual(START)
    expect(outcome.writtenTo).toBeLessThanOrEqual(END)
    seen[outcome.reply] = (seen[outcome.reply] ?? 0) + 1
    if (n % 50 === 0)
      expect(await ranges.ask((socket) => void socket.write(GOOD))).toMatchObject({
        reply: 'done',
        writtenTo: END,
        isRight: true
      })
  }
  console.log(`${COUNT} changed heads: ${JSON.stringify(seen)}`)
})
