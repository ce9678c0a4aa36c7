// The DHT's thread: `bittorrent-dht` and its socket run here, isolated from the engine.
import { parentPort } from 'node:worker_threads'
import { DhtNode, type DhtOptions } from '@svc/internal-discovery'
import { supervisedData } from '@svc/internal-workers'
import type { FromDht, ToDht } from './dht.ts'

const port = parentPort!
const tell = (message: FromDht): void => port.postMessage(message)

const node = DhtNode.start(supervisedData<DhtOptions>())
// A failure here ends the thread, and its owner is notified.
void node.then((started) => tell({ kind: 'listening', port: started.port }))

port.on('message', (message: ToDht) => {
  void node.then(async (dht) => {
    switch (message.kind) {
      case 'join':
        return dht.join(message.infohash, message.port, (peer, allowPrivate) =>
          tell({ kind: 'peer', infohash: message.infohash, peer, allowPrivate })
        )
      case 'leave':
        return dht.leave(message.infohash)
      case 'close':
        await dht.close()
        port.close()
    }
  })
})
