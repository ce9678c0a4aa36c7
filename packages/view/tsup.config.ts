import { library } from '../../tsup.base.ts'
import { bundling } from '../../tsup.bundle.ts'

export default library(
  { index: 'src/index.ts', 'in-order': 'src/in-order.ts', 'view-error': 'src/view-error.ts' },
  bundling({ packages: ['tar-stream'], node: true })
)
