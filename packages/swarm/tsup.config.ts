import { library } from '../../tsup.base.ts'
import { bundling } from '../../tsup.bundle.ts'

export default library(
  {
    index: 'src/index.ts',
    'verify-worker': 'src/verify-worker.ts'
  },
  bundling({
    packages: ['bittorrent-dht', 'bittorrent-tracker'],
    stubs: {
      '@thaunknown/simple-peer/lite.js': 'export default {WEBRTC_SUPPORT: false}',
      '@thaunknown/simple-websocket': 'export default undefined',
      socks: 'export default undefined'
    }
  })
)
