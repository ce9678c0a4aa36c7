import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { systemClock } from '../src/index.ts'

test('timers fire, intervals repeat, and cancelled ones do neither', async () => {
  let ticks = 0
  const never = systemClock.after(1, () => expect.unreachable('it was cancelled'))
  never.cancel()
  await new Promise<void>((resolve) => {
    const period = systemClock.every(1, () => {
      ticks += 1
      if (ticks < 3) return
      period.cancel()
      period.cancel()
      resolve()
    })
  })
  const before = systemClock.monotonic()
  await new Promise<void>((resolve) => void systemClock.after(2, resolve))
  expect(systemClock.monotonic()).toBeGreaterThan(before)
  expect(ticks).toBe(3)
})

test('a sleep rejects with the reason of its signal', async () => {
  const end = new AbortController()
  const asleep = systemClock.sleep(60_000, end.signal)
  end.abort(new RangeError('enough'))
  await expect(asleep).rejects.toThrow(RangeError)
  await expect(systemClock.sleep(60_000, end.signal)).rejects.toThrow(RangeError)
})

test('pending timers do not keep a process alive; a sleep does', () => {
  const url = new URL('../src/index.ts', import.meta.url).href
  const code = `import { systemClock } from ${JSON.stringify(url)}
    systemClock.after(60_000, () => console.log('after'))
    systemClock.every(60_000, () => console.log('every'))
    await systemClock.sleep(1)
    console.log('slept')`
  const flags = ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', code]
  const { stdout, status } = spawnSync(process.execPath, flags, { encoding: 'utf8' })
  expect([stdout, status]).toEqual(['slept\n', 0])
})
