import { expect, test } from 'vitest'
import { expectOnlyLiarsBanned } from './poisoned-schedules.ts'

test('in 20,000 random schedules exactly those are banned who sent a wrong block of a piece, and all of it arrives', async () => {
  const { culprits } = await expectOnlyLiarsBanned(1_000, 20_000)
  expect(culprits).toBeGreaterThan(10_000)
}, 1_200_000)
