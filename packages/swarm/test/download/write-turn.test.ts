import { Worker } from 'node:worker_threads'
import { expect, test } from 'vitest'
import { WRITE_TURN_BYTES, WriteTurn } from '../../src/download/write-turn.ts'

const memory = (): SharedArrayBuffer => new SharedArrayBuffer(WRITE_TURN_BYTES)

test('a turn returns what the work returns, throws what it throws, and is free afterwards', () => {
  const shared = memory()
  const turn = new WriteTurn(shared)
  expect(turn.run(() => Atomics.load(new Int32Array(shared), 0))).toBe(1)
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
  const begun = performance.now()
  expect(turn.run(() => Atomics.load(state, 0))).toBe(1)
  expect(performance.now() - begun).toBeGreaterThan(15)
  expect(Atomics.load(state, 0)).toBe(0)
})

test('who waits too long for somebody who still writes does so, too', () => {
  const turn = new WriteTurn(memory())
  expect(turn.run(() => turn.run(() => 'both'))).toBe('both')
})

test('threads have their turns one after the other', async () => {
  const shared = memory()
  const log = new SharedArrayBuffer(12)
  const url = new URL('../../src/download/write-turn.ts', import.meta.url).href
  // each adds to a count without an atomic operation, so that two at a time would lose some
  const code = `
    import { workerData } from 'node:worker_threads'
    const { WriteTurn } = await import(workerData.url)
    const turn = new WriteTurn(workerData.shared)
    const log = new Int32Array(workerData.log)
    for (let at = 0; at < 2_000; at += 1) turn.run(() => {
      if (Atomics.add(log, 1, 1) > 0) Atomics.add(log, 2, 1)
      const before = log[0]
      for (let spin = 0; spin < 200; spin += 1) Math.hypot(spin)
      log[0] = before + 1
      Atomics.sub(log, 1, 1)
    })`
  const ends = Array.from({ length: 2 }, () => {
    const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(code)}`), {
      workerData: { shared, log, url },
      execArgv: ['--disable-warning=ExperimentalWarning']
    })
    return new Promise((resolve, reject) => worker.once('exit', resolve).once('error', reject))
  })
  expect(await Promise.all(ends)).toEqual([0, 0])
  const [count, inside, overlaps] = new Int32Array(log)
  expect(inside).toBe(0)
  // On a busy machine a thread may lose its core in its turn for longer than others wait for it.
  expect(overlaps).toBeLessThan(200)
  expect(count).toBeGreaterThan(4_000 - 200)
})
