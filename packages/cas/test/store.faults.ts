import { describe } from 'vitest'
import { describePassingFaults } from './passing-faults.ts'
import { describeReadFaults } from './read-faults.ts'
import { describeWriteFaults } from './write-faults.ts'

describe('each file operation in turn fails', () => {
  describeWriteFaults(5, 1)
  describeReadFaults(3)
  describePassingFaults(['EIO', 'EAGAIN', 'EOF', 'SHORT_READ'], 1)
})
