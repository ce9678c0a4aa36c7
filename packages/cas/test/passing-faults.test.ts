import { describe } from 'vitest'
import { describePassingFaults } from './passing-faults.ts'

// The first operations; `passing-faults.slow.ts` has a sample of all, `store.faults.ts` all operations and all errors.
describe('a fault that passes', () => {
  describePassingFaults(['EIO'], 1000)
})
