import { expect, test, vi } from 'vitest'
import { SharedDownloadLimit } from '../src/download-limit.ts'

test('who takes while another thread sets the limit makes nobody wait for what was allowed before', () => {
  let atUs = 0
  const limit = new SharedDownloadLimit(undefined, () => atUs)
  const elsewhere = new SharedDownloadLimit(limit.memory, () => atUs)
  const store = Atomics.store.bind(Atomics)
  for (const [before, after] of [
    [1_000_000, 1_000_000],
    [1_000_000, 1],
    [0, 1_000_000]
  ] as const) {
    limit.bytesPerSecond = before
    atUs += 60_000_000
    // at any moment between its steps
    const steps = vi.spyOn(Atomics, 'store').mockImplementation(((words: BigInt64Array, at: number, value: bigint) => {
      elsewhere.take(0)
      store(words, at, value)
      elsewhere.take(0)
      return value
    }) as typeof Atomics.store)
    limit.bytesPerSecond = after
    expect(steps).toHaveBeenCalled()
    steps.mockRestore()
    expect(limit.bytesPerSecond).toBe(after)
    expect(limit.waitMs(limit.take(0))).toBe(0)
  }
})
