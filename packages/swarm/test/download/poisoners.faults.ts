import { expect, test } from 'vitest'
import { expectOnlyLiarsBanned } from './poisoned-schedules.ts'

test('in 20,000 random schedules exactly the senders of wrong blocks are banned, and every piece arrives', async () => {
  const { culprits } = await expectOnlyLiarsBanned(1_000, 20_000)
  expect(culprits).toBeGreaterThan(10_000)
}, 1_200_000)
