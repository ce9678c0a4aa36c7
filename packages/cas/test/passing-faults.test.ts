import { describe } from 'vitest'
import { describePassingFaults } from './passing-faults.ts'

// The first operations on a small blob; `passing-faults.slow.ts` has a sample of all on a large one too, `store.faults.ts` all
// operations and all errors.
describe('a fault that passes', () => {
  describePassingFaults(['EIO'], 1000, [{ name: 'small', sizeBytes: 5000 }])
})
