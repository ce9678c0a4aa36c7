import { expect, test } from 'vitest'
import { expectOnlyLiarsBanned } from './poisoned-schedules.ts'

test('in 200 random schedules exactly the senders of wrong blocks are banned, and every piece arrives', async () => {
  const { culprits } = await expectOnlyLiarsBanned(700, 200)
  expect(culprits).toBeGreaterThan(100)
})
