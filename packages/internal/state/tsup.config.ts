import { library } from '../../../tsup.base.ts'

export default library({
  index: 'src/index.ts',
  worker: 'src/offload/worker.ts',
  'document-worker': 'src/document-worker.ts',
  'signature-worker': 'src/signature-worker.ts',
  'view-worker': 'src/view-worker.ts'
})
