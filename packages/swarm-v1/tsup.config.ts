import { library } from '../../tsup.base.ts'
import { bundling } from '../../tsup.bundle.ts'

/** Stands for a class that is never made: whoever makes one has switched on what is off here. */
const absent =
  'class Absent { constructor() { throw new Error("this part is not in the bundle") } }; export default Absent;'

export default library(
  { index: 'src/index.ts', worker: 'src/worker.ts' },
  bundling({
    packages: ['webtorrent', 'bittorrent-protocol', 'bittorrent-dht', 'ipaddr.js'],
    node: true,
    stubs: {
      // WebRTC, with a native library of its own.
      '@thaunknown/simple-peer/lite.js': `${absent} Absent.WEBRTC_SUPPORT = false`,
      // trackers and local peer discovery: ours finds the peers.
      'bittorrent-tracker': `${absent} export { Absent as Client }`,
      'bittorrent-lsd': absent,
      // uTP (native), UPnP and NAT-PMP.
      './lib/utp.cjs': 'export default {}',
      './utp.cjs': 'export default {}',
      '@silentbot1/nat-api': 'export default undefined',
      // blocklists (with an install script), webseeds, HTTP serving, torrents that are made or fetched, folders of files.
      'load-ip-set': 'export default undefined',
      './webconn.js': absent,
      './lib/server.js': `${absent} export { Absent as NodeServer, Absent as BrowserServer }`,
      'create-torrent': `${absent} export { Absent as parseInput }`,
      'cross-fetch-ponyfill': 'export default undefined',
      'fs-chunk-store': absent
    }
  })
)
