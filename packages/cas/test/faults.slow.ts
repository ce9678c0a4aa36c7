import { describe } from 'vitest'
import { describeWriteFaults } from './write-faults.ts'

// A sample, for every commit; `store.faults.ts` tries all operations and all errors.
describe('the N-th file operation fails', () => {
  describeWriteFaults(2, 5)
})
