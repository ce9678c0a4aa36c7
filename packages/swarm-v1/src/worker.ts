// The thread for BitTorrent v1: webtorrent, its sockets and the data from peers live here, isolated from the rest of
// the process.
import { parentPort } from 'node:worker_threads'
import { systemClock as clock } from '@svc/internal-clock'
import { DhtNode } from '@svc/internal-discovery'
import { isPublicAddress } from '@svc/internal-net'
import { supervisedData } from '@svc/internal-workers'
import WebTorrent from 'webtorrent'
import { SwarmV1Error } from './errors.ts'
import type { FromThread, ToThread, V1ThreadData } from './messages.ts'
import type { WebTorrentConstructor } from './thread/client.ts'
import { limitDownloads } from './thread/download-limit.ts'
import { boundIncoming, MAX_INCOMING } from './thread/incoming.ts'
import { OwnerCalls } from './thread/owner-calls.ts'
import { ThreadTorrent, type TorrentDeps } from './thread/torrent.ts'
import { boundWires } from './thread/wire-bounds.ts'

const TICK_MS = 250
const MAX_OUTGOING = 55

const port = parentPort!
const {
  host,
  port: listenPort,
  dhtBootstrap,
  policy,
  uploadLimitBytesPerSecond,
  limit
} = supervisedData<V1ThreadData>()
const tell = (message: FromThread): void => port.postMessage(message)

boundWires()
/** Hosts that the user named: dialled whatever their address. */
const named = new Set<string>()
const torrents = new Map<number, ThreadTorrent>()
const calls = new OwnerCalls(tell)
const client = new (WebTorrent as WebTorrentConstructor)({
  // an object, since it is passed on to `server.listen`: the only way to set the address.
  torrentPort: { host, port: listenPort },
  // our own discovery finds the peers, as it validates messages.
  dht: false,
  tracker: false,
  lsd: false,
  utPex: dhtBootstrap !== undefined,
  // webtorrent counts both kinds: incoming connections must leave room for its own.
  maxConns: MAX_OUTGOING + MAX_INCOMING,
  utp: false,
  natUpnp: false,
  natPmp: false,
  webSeeds: false,
  // with encryption on, webtorrent never falls back to plain for peers that support nothing else; nearly all accept
  // plain.
  secure: 0,
  uploadLimit: uploadLimitBytesPerSecond > 0 ? uploadLimitBytesPerSecond : -1
})
if (policy === 'internet') {
  client.blocked = { contains: (peer) => !isPublicAddress(peer.replace(/^\[|\]$/g, '')) && !named.has(peer) }
}

if (limit !== undefined) limitDownloads(client, limit, clock)

let unable = false
client.on('error', (error: Error) => {
  // before the client listens, an error is fatal. Later ones concern a single torrent, which handles them, or do not
  // justify ending the thread.
  if (client.address() !== null || unable) return
  unable = true
  tell({ kind: 'unable', message: error.message })
  // let the message leave first.
  setImmediate(() => process.exit(1))
})
client.once('listening', () => {
  const { tcpServer, _onTCPConnectionBound: accept } = client._connPool ?? {}
  if (tcpServer === undefined || accept === undefined)
    throw new SwarmV1Error('E_SWARM_V1', 'client', 'this version of webtorrent accepts connections differently')
  boundIncoming(tcpServer, accept)
  void start()
})

async function start(): Promise<void> {
  const dht = dhtBootstrap && (await DhtNode.start({ bootstrap: dhtBootstrap, host }))
  const address = client.address()!
  const deps = { clock, client, dht, policy, port: address.port, tell }
  port.on('message', (message: ToThread) => receive(message, deps))
  clock.every(TICK_MS, () => {
    for (const torrent of torrents.values()) torrent.tick()
  })
  tell({ kind: 'listening', host: address.address, port: address.port })
}

function receive(message: ToThread, deps: Omit<TorrentDeps, 'pieces'>): void {
  switch (message.kind) {
    case 'join':
      for (const peer of message.peers) named.add(peer.slice(0, peer.lastIndexOf(':')))
      torrents.set(message.id, new ThreadTorrent(message, { ...deps, pieces: calls.of(message.id) }))
      return
    case 'opened':
      return torrents.get(message.id)?.opened(message.upload)
    case 'got':
      return calls.answer(message.call, message.bytes)
    case 'stored':
      return calls.answer(message.call, undefined)
    case 'peer':
      return torrents.get(message.id)?.addPeer(message.address)
    case 'leave':
      return void leave(message.id)
    case 'close':
      return void close(deps.dht)
  }
}

async function leave(id: number): Promise<void> {
  const torrent = torrents.get(id)
  torrents.delete(id)
  await torrent?.leave()
  calls.left(id)
  tell({ kind: 'left', id })
}

async function close(dht: DhtNode | undefined): Promise<void> {
  await Promise.all([...torrents.keys()].map(leave))
  await Promise.all([dht?.close(), new Promise<void>((resolve) => client.destroy(() => resolve()))])
  process.exit()
}
