// An engine with local discovery in a network namespace of the test. Its arguments say what to do; prints `done` when it has the bytes.
import { readFileSync } from 'node:fs'
import { parseTorrent } from '@svc/metainfo'
import { createFileStorage, createSwarm } from '../src/index.ts'

const [torrentFile, folder, role] = process.argv.slice(2) as [string, string, 'seed' | 'leech']
const { info, pieceLayers } = parseTorrent(readFileSync(torrentFile))
const swarm = await createSwarm({ lsd: true, pex: false })
const seedOnly = role === 'seed'
const torrent = swarm.add({
  info,
  pieceLayers: pieceLayers.layers,
  storage: createFileStorage(folder, { trusted: seedOnly }),
  seedOnly
})
process.stdout.write('ready\n')
if (!seedOnly) {
  await torrent.completed()
  process.stdout.write('done\n')
}
process.stdin.resume()
process.stdin.once('end', () => void swarm.close())
