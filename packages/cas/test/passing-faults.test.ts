import { describe } from 'vitest'
import { describePassingFaults } from './passing-faults.ts'

// A sample, for every commit; `store.faults.ts` tries all operations and all errors.
describe('a fault that passes', () => {
  describePassingFaults(['EIO', 'EOF'], 7)
})
