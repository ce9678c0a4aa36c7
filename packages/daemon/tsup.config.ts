import { library } from '../../tsup.base.ts'
import { bundling } from '../../tsup.bundle.ts'

export default library(
  {
    index: 'src/index.ts',
    main: 'src/app/main.ts'
  },
  bundling({ packages: ['ipaddr.js', 'lru-cache', 'pino', 'smol-toml', 'typebox', 'undici'], node: true })
)
