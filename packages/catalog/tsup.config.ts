import { library } from '../../tsup.base.ts'
import { bundling } from '../../tsup.bundle.ts'

export default library(
  { index: 'src/index.ts', parts: 'src/parts.ts', 'catalog-document-worker': 'src/catalog-document-worker.ts' },
  bundling({ packages: ['ipaddr.js', 'undici'], node: true })
)
