import { describe } from 'vitest'
import { describeImportFaults } from '../support/fault-sweep.ts'

// A sample, for every commit; `import.faults.ts` tries all operations and further errors.
describe('the N-th file operation fails, from the store up to the state', () => {
  describeImportFaults('EIO', '', 9)
})
