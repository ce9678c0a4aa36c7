// Runs one engine in a separate process, as the seed or leech of a measurement; controlled by JSON lines on stdin.

import { readFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { createInterface } from 'node:readline'
import { setFlagsFromString } from 'node:v8'
import { parseTorrent } from '@svc/metainfo'
import { createFileStorage, createSwarm, type TorrentStorage } from '@svc/swarm'

// The young generation, as the daemon bounds it
setFlagsFromString('--max-semi-space-size=1')
setFlagsFromString('--semi-space-growth-factor=1')

const out = (message: object): void => void process.stdout.write(`${JSON.stringify(message)}\n`)
const swarm = await createSwarm({ peerAddress: { host: '127.0.0.1', port: 0 } })
const delay = monitorEventLoopDelay({ resolution: 5 })
out({ event: 'ready', port: swarm.port })

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line) as {
    cmd: string
    torrent?: string
    save?: string
    seed?: boolean
    peers?: [string, number][]
    magnet?: boolean
  }
  if (command.cmd === 'quit') break
  if (command.cmd === 'usage') {
    const usage = process.resourceUsage()
    out({
      event: 'usage',
      cpuSeconds: (usage.userCPUTime + usage.systemCPUTime) / 1e6,
      maxRssBytes: usage.maxRSS * 1024,
      loopP99Ms: delay.percentile(99) / 1e6
    })
  }
  if (command.cmd === 'warm') {
    delay.enable()
    out({ event: 'warm' })
  }
  if (command.cmd !== 'add') continue
  const { info, pieceLayers } = parseTorrent(readFileSync(command.torrent!))
  const storage: TorrentStorage = createFileStorage(command.save!, { trusted: command.seed === true })
  const begun = performance.now()
  const torrent = swarm.add({
    ...(command.magnet === true ? { infohash: info.infohash } : { info, pieceLayers: pieceLayers.layers }),
    storage,
    ...(command.seed === true ? { seedOnly: true } : {}),
    peers: (command.peers ?? []).map(([host, port]) => ({ host, port }))
  })
  torrent.on('warning', (warning) => console.error(warning))
  torrent.on('failed', (error) => console.error(error))
  if (command.seed === true) {
    out({ event: 'added' })
    continue
  }
  torrent.once('piece', () => out({ event: 'first-block', seconds: (performance.now() - begun) / 1000 }))
  torrent.completed().then(
    () => out({ event: 'finished', seconds: (performance.now() - begun) / 1000 }),
    // rejects if the engine is closed before the download completes
    () => undefined
  )
}
await swarm.close()
