import { expect, test } from 'vitest'
import { HostQueue } from '../src/host-queue.ts'
import { HostUse } from '../src/host-use.ts'

const settled = () => new Promise((resolve) => setImmediate(resolve))

test('a host that received little is served before hosts that always ask', async () => {
  const clock = { nowMs: 0 }
  const queue = new HostQueue(
    { atOnce: 1, maxWaiting: 20 },
    () => clock.nowMs,
    () => new Error('refused')
  )
  const done: string[] = []
  const ends: (() => void)[] = []
  const ask = (host: string): Promise<void> =>
    queue.run(host, async () => {
      await new Promise<void>((resolve) => ends.push(resolve))
      done.push(host)
    })
  const greedy = ['192.0.2.1', '192.0.2.2', '192.0.2.3']
  const all = [...greedy, ...greedy, ...greedy].map(ask)
  const end = async (): Promise<void> => {
    await settled()
    clock.nowMs += 1_000
    ends.shift()!()
    await settled()
  }
  for (let i = 0; i < 3; i++) await end()
  all.push(ask('192.0.2.9'))
  for (let i = 0; i < 7; i++) await end()
  await Promise.all(all)
  // one was running when it came
  expect(done.indexOf('192.0.2.9')).toBe(4)
  expect(done.slice(0, 3)).toEqual(greedy)
})

test('received bytes count half after ten minutes, and current ones at once', () => {
  const clock = { nowMs: 0 }
  const use = new HostUse(() => clock.nowMs)
  const end = use.begin('2001:db8::1')
  clock.nowMs = 1_000
  // in the same /64
  expect(use.of('2001:db8::2')).toBe(1_000)
  end()
  end()
  expect(use.of('2001:db8::1')).toBe(1_000)
  clock.nowMs += 600_000
  expect(use.of('2001:db8::1')).toBe(500)
  expect(use.of('192.0.2.1')).toBe(0)
})

test('hosts beyond a thousand are forgotten', () => {
  const clock = { nowMs: 0 }
  const use = new HostUse(() => clock.nowMs)
  const hosts = Array.from({ length: 1_001 }, (_, i) => `10.0.${i >> 8}.${i & 255}`)
  for (const host of hosts) {
    const end = use.begin(host)
    clock.nowMs += 1
    end()
  }
  expect(use.of(hosts[0]!)).toBe(0)
  expect(use.of(hosts[1]!)).toBeGreaterThan(0)
})
