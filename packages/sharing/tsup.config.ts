import { library } from '../../tsup.base.ts'
import { bundling } from '../../tsup.bundle.ts'

export default library(
  { index: 'src/index.ts', parts: 'src/parts.ts', 'answer-worker': 'src/answer-worker.ts' },
  bundling({ packages: ['ipaddr.js', 'undici'], node: true })
)
