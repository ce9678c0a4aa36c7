import { expect, test } from 'vitest'
import { closeAfterTests, fakeHub, fileOf, hubOf } from './fixtures.ts'

closeAfterTests()

test('a full sink slows the network down', async () => {
  const big = { id: 'Org/Big', files: [{ path: 'model.gguf', content: { seed: 5, sizeBytes: 128 * 2 ** 20 } }] }
  const fake = await fakeHub({ repos: [big] })
  const limits = { rangesPerFile: 1, rangeBytes: 128 * 2 ** 20 }
  const hub = hubOf(fake, { limits, retry: { stallMs: 3_000, slowMs: 2_000 } })
  const file = await fileOf(hub, 'Org/Big', 'model.gguf')
  const stop = new AbortController()
  let tell = () => {}
  const called = new Promise<void>((resolve) => {
    tell = resolve
  })
  const stuck = {
    sizeBytes: file.sizeBytes,
    ranges: () => [],
    unmark: () => {},
    write: async () => {
      tell()
      if (stop.signal.aborted) return
      await new Promise<void>((resolve) => stop.signal.addEventListener('abort', () => resolve()))
    }
  }
  const done = hub.download(file, stuck, { signal: stop.signal })
  await called
  // longer than the limits: a full sink is no stalled source, and no slow one.
  for (let before = -1; before !== fake.bytesSent.get(file.path); ) {
    before = fake.bytesSent.get(file.path) as number
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
  await new Promise((resolve) => setTimeout(resolve, 3_500))
  expect(fake.bytesSent.get(file.path)).toBeLessThan(32 * 2 ** 20)
  expect(fake.requests.filter((request) => request.stage === 'cdn')).toHaveLength(1)
  stop.abort(new Error('seen'))
  await expect(done).rejects.toThrow('seen')
})
