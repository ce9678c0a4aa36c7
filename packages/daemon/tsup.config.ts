import { library } from '../../tsup.base.ts'
import { bundling } from '../../tsup.bundle.ts'

export default library(
  {
    index: 'src/index.ts',
    library: 'src/embedded/index.ts',
    main: 'src/app/main.ts',
    worker: 'src/offload/worker.ts',
    'listing-worker': 'src/sources/hub/listing-worker.ts',
    'document-worker': 'src/library/document-worker.ts',
    'signature-worker': 'src/library/signature-worker.ts',
    'view-worker': 'src/library/view-worker.ts'
  },
  bundling({ packages: ['ipaddr.js', 'lru-cache', 'pino', 'smol-toml', 'typebox', 'undici'], node: true })
)
