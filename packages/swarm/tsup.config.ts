import { libraryWithThreads } from '../../tsup.base.ts'
import { bundling } from '../../tsup.bundle.ts'

export default libraryWithThreads(
  {
    index: 'src/index.ts',
    'dht-worker': 'src/discovery/dht-worker.ts'
  },
  { 'verify-worker': 'src/verify-worker.ts' },
  bundling({ packages: ['bittorrent-dht', 'ipaddr.js', 'lru-cache', 'undici'], node: true })
)
