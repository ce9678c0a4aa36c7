import { libraryWithThreads } from '../../tsup.base.ts'

export default libraryWithThreads(
  { index: 'src/index.ts', contract: 'src/contract.ts' },
  { 'hash-worker': 'src/hash-worker.ts' }
)
