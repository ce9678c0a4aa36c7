import { describe } from 'vitest'
import { describePassingFaults } from './passing-faults.ts'

// A sample of all operations, for every commit; `store.faults.ts` tries all of them with all errors.
describe('a fault that passes', () => {
  describePassingFaults(['EIO', 'EOF'], 7)
})
