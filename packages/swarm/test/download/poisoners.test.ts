import { expect, test } from 'vitest'
import { expectOnlyLiarsBanned } from './poisoned-schedules.ts'

test('in 200 random schedules exactly those are banned who sent a wrong block of a piece, and all of it arrives', async () => {
  const { culprits } = await expectOnlyLiarsBanned(700, 200)
  expect(culprits).toBeGreaterThan(100)
})
