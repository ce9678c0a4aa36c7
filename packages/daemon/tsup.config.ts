import { library } from '../../tsup.base.ts'

export default library({
  index: 'src/index.ts',
  main: 'src/main.ts',
  'offload-worker': 'src/offload-worker.ts'
})
