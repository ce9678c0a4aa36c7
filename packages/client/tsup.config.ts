import { library } from '../../tsup.base.ts'
import { bundling } from '../../tsup.bundle.ts'

export default library(
  {
    index: 'src/index.ts',
    protocol: 'src/protocol.ts',
    runtimes: 'src/runtimes.ts'
  },
  // the declarations need its types, so it stays a dependency; at run time its hundreds of files cost more than all of ours.
  bundling({ packages: ['typebox'] })
)
