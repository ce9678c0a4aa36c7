import { library } from '../../tsup.base.ts'
import { bundling } from '../../tsup.bundle.ts'

export default library(
  {
    index: 'src/index.ts',
    'git-blob-sha1-hasher': 'src/git-blob-sha1-hasher.ts',
    'range-worker': 'src/range-worker.ts'
  },
  bundling({ packages: ['ipaddr.js', 'undici'], node: true })
)
