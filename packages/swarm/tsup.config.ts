import { library } from '../../tsup.base.ts'

export default library({
  index: 'src/index.ts',
  'verify-worker': 'src/verify-worker.ts'
})
