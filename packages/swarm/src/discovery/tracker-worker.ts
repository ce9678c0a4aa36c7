// The trackers' thread: sockets, name lookups and the parsing of untrusted answers run here, isolated from the engine.
import { parentPort } from 'node:worker_threads'
import { Trackers } from '@svc/internal-discovery'
import { supervisedData } from '@svc/internal-workers'
import type { FromTrackers, Stats, ToTrackers } from './messages.ts'

supervisedData()
const port = parentPort!
const tell = (message: FromTrackers): void => port.postMessage(message)
const torrents = new Map<number, { readonly trackers: Trackers; stats: Stats }>()

port.on('message', (message: ToTrackers) => {
  switch (message.kind) {
    case 'join':
      return join(message)
    case 'stats':
      return void withStats(message)
    case 'completed':
      return withStats(message)?.trackers.completed()
    case 'leave':
      return void leave(message)
    case 'close':
      return void Promise.all([...torrents.values()].map(({ trackers }) => trackers.close())).then(() => port.close())
  }
})

function join({ id, urls, infohash, peerId, port: listening, stats }: Extract<ToTrackers, { kind: 'join' }>): void {
  const entry = { stats } as { trackers: Trackers; stats: Stats }
  entry.trackers = new Trackers({
    urls,
    infohash,
    peerId,
    port: listening,
    // These trackers were named by the user, or by a magnet that the user chose.
    policy: 'owner',
    stats: () => entry.stats,
    found: (peer, allowPrivate) => tell({ kind: 'peer', id, peer, allowPrivate }),
    warn: (text) => tell({ kind: 'warning', id, message: text })
  })
  torrents.set(id, entry)
}

function withStats({ id, stats }: { readonly id: number; readonly stats: Stats }) {
  const entry = torrents.get(id)
  if (entry) entry.stats = stats
  return entry
}

async function leave(message: Extract<ToTrackers, { kind: 'leave' }>): Promise<void> {
  const entry = withStats(message)
  torrents.delete(message.id)
  await entry?.trackers.close()
  tell({ kind: 'left', id: message.id })
}
