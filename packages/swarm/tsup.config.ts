import { library } from '../../tsup.base.ts'
import { bundling } from '../../tsup.bundle.ts'

export default library(
  {
    index: 'src/index.ts',
    'verify-worker': 'src/verify-worker.ts',
    'dht-worker': 'src/discovery/dht-worker.ts',
    'tracker-worker': 'src/discovery/tracker-worker.ts'
  },
  bundling({ packages: ['bittorrent-dht', 'ipaddr.js'], node: true })
)
