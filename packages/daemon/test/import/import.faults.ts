import { describe } from 'vitest'
import { describeImportFaults } from '../support/fault-sweep.ts'

describe('each file operation in turn fails, from the store up to the state', () => {
  describeImportFaults('EIO', '', 1)
  describeImportFaults('ENOSPC', 'write|open|mkdir|link|rename|fsync', 1)
  describeImportFaults('EDQUOT', 'write|open|mkdir|link|rename', 1)
  describeImportFaults('EMFILE', 'open', 1)
})
