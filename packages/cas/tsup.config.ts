import { libraryWithThreads } from '../../tsup.base.ts'

export default libraryWithThreads({ index: 'src/index.ts' }, { 'hash-worker': 'src/hash-worker.ts' })
