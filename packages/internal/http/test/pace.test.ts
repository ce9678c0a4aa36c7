// Hosts in simulated time that bear a number of requests, each in its way: what becomes of the pace.
import { VirtualClock } from '@svc/testkit/virtual-clock'
import { expect, test } from 'vitest'
import { type HostTurn, Paces } from '../src/index.ts'

const MOST = 16
/** Bytes per second of one request. */
const RATE = 1_000_000
const STEP_MS = 50

/** How a host answers: bytes per second of each of so many requests, or not at all. */
interface Host {
  readonly rate: (requests: number) => number
  readonly bears?: (nowMs: number) => number
  readonly retryAfterMs?: number
}

/** Above that number all requests together get a quarter of what that many would. */
const rateAbove = (bears: number, requests: number): number => (requests > bears ? (bears * RATE) / 4 / requests : RATE)
const slowAbove = (bears: number): Host => ({ rate: (requests) => rateAbove(bears, requests) })
const refusingAbove = (bears: number, retryAfterMs = 0): Host => ({
  rate: () => RATE,
  bears: () => bears,
  retryAfterMs
})

/** Downloads without end, by so many workers. */
class World {
  readonly clock = new VirtualClock()
  readonly paces: Paces
  bytes = 0
  served = 0
  refused = 0
  readonly #host: Host

  constructor(host: Host, { first, most = MOST, workers = MOST }: { first?: number; most?: number; workers?: number }) {
    this.#host = host
    this.paces = new Paces({ most, ...(first !== undefined && { first }) }, this.clock)
    for (let n = 0; n < workers; n++) void this.#work()
  }

  /** Bytes per second of the next so many seconds. */
  async rateOf(seconds: number): Promise<number> {
    const before = this.bytes
    await this.clock.advance(seconds * 1_000)
    return (this.bytes - before) / seconds
  }

  async #work(): Promise<void> {
    for (;;) {
      const turn = this.paces.turn()
      await turn.at('host', AbortSignal.any([]))
      const { bears, retryAfterMs = 0 } = this.#host
      if (this.served >= (bears?.(this.clock.monotonic()) ?? Infinity)) {
        this.refused++
        await this.clock.sleep(10)
        turn.end({ refusedMs: retryAfterMs })
        await this.clock.sleep(Math.max(500, retryAfterMs))
      } else {
        this.served++
        await this.#serve(turn)
        this.served--
        turn.end(turn.signal.aborted ? 'failed' : 'done')
      }
    }
  }

  /** Eight seconds at the full rate. */
  async #serve(turn: HostTurn): Promise<void> {
    for (let bytes = 0; bytes < 8 * RATE && !turn.signal.aborted; ) {
      await this.clock.sleep(STEP_MS)
      const count = (this.#host.rate(this.served) * STEP_MS) / 1_000
      bytes += count
      this.bytes += count
      turn.took(count)
    }
  }
}

test.each([1, 2, 3, 4, 6])(
  'a host that is slow above %i requests gets as many, or a try now and then',
  async (bears) => {
    const world = new World(slowAbove(bears), {})
    await world.rateOf(40)
    expect(await world.rateOf(300)).toBeGreaterThan(0.95 * bears * RATE)
  }
)

test('a first minute at a host that is slow above four costs little', async () => {
  expect(await new World(slowAbove(4), {}).rateOf(15)).toBeGreaterThan(0.87 * 4 * RATE)
})

test.each([1, 3, 4, 6])('a host that refuses more than %i requests gets as many', async (bears) => {
  const world = new World(refusingAbove(bears), {})
  await world.rateOf(20)
  const before = world.refused
  expect(await world.rateOf(100)).toBeGreaterThan(0.95 * bears * RATE)
  // each refusal doubles the time until more are tried
  expect(world.refused - before).toBeLessThanOrEqual(6)
})

test('a host that asks for time gets it before more is tried', async () => {
  const world = new World(refusingAbove(4, 90_000), {})
  await world.rateOf(5)
  const before = world.refused
  await world.rateOf(80)
  expect(world.refused).toBe(before)
})

test('a host that bears all that there are gets them, at once', async () => {
  const world = new World({ rate: () => RATE }, {})
  expect(await world.rateOf(30)).toBeGreaterThan(0.95 * MOST * RATE)
  expect(world.served).toBe(MOST)
})

test('where more requests bring no more, there are no more', async () => {
  const world = new World({ rate: (requests) => (4 * RATE) / Math.max(4, requests) }, {})
  await world.rateOf(60)
  expect(world.served).toBeLessThanOrEqual(5)
  expect(await world.rateOf(60)).toBeGreaterThan(0.95 * 4 * RATE)
})

test('a host that refuses everything for a while gets one request at a time, and all again afterwards', async () => {
  const world = new World({ rate: () => RATE, bears: (nowMs) => (nowMs < 10_000 ? 0 : Infinity) }, {})
  await world.clock.advance(10_000)
  expect(world.served).toBe(0)
  await world.clock.advance(60_000)
  expect(world.served).toBe(MOST)
})

test('a host that begins to bear fewer is noticed', async () => {
  let bears = 8
  const world = new World({ rate: (requests) => rateAbove(bears, requests) }, {})
  await world.rateOf(30)
  bears = 2
  await world.rateOf(30)
  expect(await world.rateOf(60)).toBeGreaterThan(0.9 * 2 * RATE)
})

test('hosts have paces of their own, which all requests share, and one host after another costs one place at a time', async () => {
  const paces = new Paces({ first: 1, most: 4 }, new VirtualClock())
  const never = new AbortController().signal
  const [a, b] = [paces.turn(), paces.turn()]
  await a.at('one', never)
  await b.at('two', never)
  let moved = false
  const moving = b.at('one', never).then(() => {
    moved = true
  })
  await paces.turn().at('two', never)
  expect(moved).toBe(false)
  a.end('done')
  await moving
  b.end('done')
})

test('a wait for a place ends with its signal', async () => {
  const paces = new Paces({ first: 1, most: 1 }, new VirtualClock())
  const stop = new AbortController()
  await paces.turn().at('host', stop.signal)
  const waiting = paces.turn().at('host', stop.signal)
  stop.abort(new Error('enough'))
  await expect(waiting).rejects.toThrow('enough')
})
