import { Worker } from 'node:worker_threads'
import { expect, test } from 'vitest'
import { WRITE_TURN_BYTES, WriteTurn } from '../../src/download/write-turn.ts'

const memory = (): SharedArrayBuffer => new SharedArrayBuffer(WRITE_TURN_BYTES)

test('a turn returns what the work returns, throws what it throws, and is free afterwards', () => {
  const shared = memory()
  const turn = new WriteTurn(shared)
  expect(turn.run(() => Atomics.load(new Int32Array(shared), 0))).not.toBe(0)
  expect(() =>
    turn.run(() => {
      throw new RangeError('full')
    })
  ).toThrow(RangeError)
  expect(Atomics.load(new Int32Array(shared), 0)).toBe(0)
})

test('a turn that nobody ends costs one wait, and is taken over', () => {
  const shared = memory()
  const state = new Int32Array(shared)
  const turn = new WriteTurn(shared)
  // a thread that was ended while it wrote
  Atomics.store(state, 0, 1)
  Atomics.store(state, 1, 1)
  const begun = performance.now()
  expect(turn.run(() => Atomics.load(state, 0))).not.toBeOneOf([0, 1])
  expect(performance.now() - begun).toBeGreaterThan(15)
  expect(Atomics.load(state, 0)).toBe(0)
})

test('who waits too long for somebody who still writes does so, too', () => {
  const turn = new WriteTurn(memory())
  expect(turn.run(() => turn.run(() => 'both'))).toBe('both')
})

test('a turn that was taken over is not given away by whoever had it', () => {
  const shared = memory()
  const state = new Int32Array(shared)
  const another = 77
  new WriteTurn(shared).run(() => Atomics.store(state, 0, another))
  expect(Atomics.load(state, 0)).toBe(another)
})

const THREADS = 2
const TURNS = 2_000
const [STALLED, TAKEN_OVER] = [1, 2] as const

/** Moments in milliseconds of one clock. */
interface Turn {
  readonly asked: number
  readonly begin: number
  readonly end: number
  /** When others were let in, at the latest. */
  readonly over: number
}

/** Turns of threads, in the order of their begin. */
async function turnsOfThreads(): Promise<Turn[]> {
  const url = new URL('../../src/download/write-turn.ts', import.meta.url).href
  const code = `
    import { workerData } from 'node:worker_threads'
    const { WriteTurn } = await import(workerData.url)
    const turn = new WriteTurn(workerData.shared)
    const log = new Float64Array(workerData.log)
    const now = () => Number(process.hrtime.bigint()) / 1e6
    // none begins before the others can
    const ready = new Int32Array(workerData.ready)
    Atomics.add(ready, 0, 1)
    while (Atomics.load(ready, 0) < ${THREADS});
    // the moments of one stall: ${STALLED} as it begins, ${TAKEN_OVER} when another thread has had a turn since
    const stall = new Int32Array(workerData.stall)
    for (let at = 0; at < log.length; at += 4) {
      // whoever is ahead leaves turns for the one that stalls
      if (!workerData.stalls && at === log.length / 2) Atomics.wait(stall, 0, 0, 20_000)
      log[at] = now()
      turn.run(() => {
        log[at + 1] = now()
        if (workerData.stalls && at === log.length / 4) {
          Atomics.store(stall, 0, ${STALLED})
          Atomics.notify(stall, 0)
          Atomics.wait(stall, 0, ${STALLED}, 20_000)
        } else if (Atomics.compareExchange(stall, 0, ${STALLED}, ${TAKEN_OVER}) === ${STALLED}) Atomics.notify(stall, 0)
        for (let spin = 0; spin < 2_000; spin += 1) Math.hypot(spin)
        log[at + 2] = now()
      })
      log[at + 3] = now()
    }`
  const shared = memory()
  const [ready, stall] = [new SharedArrayBuffer(4), new SharedArrayBuffer(4)]
  const logs = Array.from({ length: THREADS }, () => new SharedArrayBuffer(TURNS * 32))
  const ends = logs.map((log, index) => {
    const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(code)}`), {
      workerData: { shared, log, url, ready, stall, stalls: index === 0 },
      execArgv: ['--disable-warning=ExperimentalWarning']
    })
    return new Promise((resolve, reject) => worker.once('exit', resolve).once('error', reject))
  })
  expect(await Promise.all(ends)).toEqual(logs.map(() => 0))
  return logs
    .flatMap((log) => {
      const times = new Float64Array(log)
      return Array.from({ length: TURNS }, (_, turn) => {
        const [asked, begin, end, over] = times.subarray(4 * turn)
        return { asked: asked!, begin: begin!, end: end!, over: over! }
      })
    })
    .sort((a, b) => a.begin - b.begin)
}

test('threads have their turns one after the other, also after one was taken over', async () => {
  const turns = await turnsOfThreads()
  expect(turns.every(({ begin, end }) => begin > 0 && end > begin)).toBe(true)
  // On a busy machine a thread may lose its core for longer than others wait for it, as the one does that stalls until they
  // go on. It loses it in its turn, or a moment before or after: it has the turn then, too.
  const long = turns.filter(({ asked, over }) => over - asked > 15)
  const overlapping = turns.filter(({ begin }, at) =>
    turns.slice(Math.max(0, at - 50), at).some(({ end }) => begin < end)
  )
  const others = overlapping.filter(({ begin }) => !long.some((turn) => begin > turn.asked && begin < turn.over))
  expect(overlapping.length).toBeGreaterThan(0)
  expect(others).toEqual([])
})
