import { library } from '../../tsup.base.ts'
import { bundling } from '../../tsup.bundle.ts'

/** Stands for a class that is never made: whoever makes one has switched on what is off here. */
const absent = 'export default class Absent { constructor() { throw new Error("this part is not in the bundle") } }'

export default library(
  { index: 'src/index.ts' },
  bundling({
    packages: ['webtorrent', 'bittorrent-protocol', 'bittorrent-dht', 'bittorrent-tracker', 'ipaddr.js'],
    stubs: {
      // WebRTC, with a native library of its own, and the trackers that introduce its peers.
      '@thaunknown/simple-peer/lite.js': `${absent} Absent.WEBRTC_SUPPORT = false`,
      '@thaunknown/simple-websocket': absent,
      // uTP (native), UPnP and NAT-PMP, local peer discovery.
      './lib/utp.cjs': 'export default {}',
      './utp.cjs': 'export default {}',
      '@silentbot1/nat-api': 'export default undefined',
      'bittorrent-lsd': absent,
      socks: absent,
      // Blocklists (with an install script), web seeds, HTTP serving, torrents made or fetched, folders of files.
      'load-ip-set': 'export default undefined',
      './webconn.js': absent,
      './lib/server.js': `${absent} export { Absent as NodeServer, Absent as BrowserServer }`,
      'create-torrent': `export default ${absent.slice('export default '.length)}; export const parseInput = Absent`,
      'fs-chunk-store': absent
    }
  })
)
