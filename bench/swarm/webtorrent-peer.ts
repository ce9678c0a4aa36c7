// Runs webtorrent in a separate process, controlled like engine-peer.ts. It creates its v1 torrent when it starts to seed.
import { writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'

interface Torrent {
  readonly torrentFile: Uint8Array
  addPeer(address: string): void
  on(event: 'done' | 'ready', listener: () => void): void
}
interface Client {
  readonly torrentPort: number
  on(event: 'listening', listener: () => void): void
  on(event: 'error', listener: (error: Error) => void): void
  seed(path: string, options: object, done: (torrent: Torrent) => void): void
  add(torrent: string, options: object): Torrent
  destroy(done: () => void): void
}

// It is a dependency of the room that bundles it.
const require = createRequire(new URL('../../packages/swarm-v1/package.json', import.meta.url))
const { default: WebTorrent } = (await import(pathToFileURL(require.resolve('webtorrent')).href)) as {
  default: new (options: object) => Client
}

const out = (message: object): void => void process.stdout.write(`${JSON.stringify(message)}\n`)
const client = new WebTorrent({
  dht: false,
  tracker: false,
  lsd: false,
  utPex: false,
  utp: false,
  natUpnp: false,
  natPmp: false
})
client.on('error', (error) => out({ event: 'error', message: String(error) }))
// webtorrent only listens once it has a torrent, and reports port 0 until then
out({ event: 'ready', port: 0 })

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line) as {
    cmd: string
    path?: string
    torrent?: string
    save?: string
    peers?: [string, number][]
  }
  if (command.cmd === 'quit') break
  if (command.cmd === 'usage') {
    const usage = process.resourceUsage()
    out({
      event: 'usage',
      cpuSeconds: (usage.userCPUTime + usage.systemCPUTime) / 1e6,
      maxRssBytes: usage.maxRSS * 1024
    })
  }
  if (command.cmd === 'seed')
    client.seed(command.path!, { announce: [] }, (torrent) => {
      writeFileSync(command.torrent!, torrent.torrentFile)
      out({ event: 'seeding', port: client.torrentPort })
    })
  if (command.cmd === 'add') {
    const begun = performance.now()
    const torrent = client.add(command.torrent!, { path: command.save!, announce: [] })
    torrent.on('ready', () => {
      for (const [host, port] of command.peers ?? []) torrent.addPeer(`${host}:${port}`)
    })
    torrent.on('done', () => out({ event: 'finished', seconds: (performance.now() - begun) / 1000 }))
  }
}
await new Promise<void>((resolve) => client.destroy(resolve))
