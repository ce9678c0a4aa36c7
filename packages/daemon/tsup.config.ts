import { library } from '../../tsup.base.ts'
import { bundling } from '../../tsup.bundle.ts'

export default library(
  {
    index: 'src/index.ts',
    main: 'src/app/main.ts',
    'listing-worker': 'src/sources/hub/listing-worker.ts'
  },
  bundling({ packages: ['ipaddr.js', 'lru-cache', 'pino', 'smol-toml', 'typebox', 'undici'], node: true })
)
