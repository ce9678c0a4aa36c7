import { library } from '../../tsup.base.ts'

export default library({
  index: 'src/index.ts',
  contract: 'src/contract.ts',
  'hash-worker': 'src/hash-worker.ts'
})
