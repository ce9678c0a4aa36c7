import { library } from '../../tsup.base.ts'

export default library({
  index: 'src/index.ts',
  main: 'src/app/main.ts',
  worker: 'src/offload/worker.ts'
})
