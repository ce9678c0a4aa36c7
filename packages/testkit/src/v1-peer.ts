import { spawn, spawnSync } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const SCRIPT = fileURLToPath(new URL('./v1_peer.py', import.meta.url))
const PYTHON = '/usr/bin/python3'

/** Whether Debian's `python3-libtorrent` is installed. With SVC_REQUIRE_INTEROP=1 it must be. */
export const haveLibtorrent = spawnSync(PYTHON, ['-c', 'import libtorrent']).status === 0
if (!haveLibtorrent && process.env.SVC_REQUIRE_INTEROP === '1') throw new Error('python3-libtorrent is required')

export interface V1PeerOptions {
  readonly mode: 'seed' | 'leech'
  /** The folder that holds (or receives) the torrent's content. */
  readonly folder: string
  readonly name?: string
  readonly piece_length?: number
  readonly trackers?: readonly string[]
  /** Base64 of the torrent file, for a leecher. */
  readonly torrent?: string
  readonly peers?: readonly string[]
  /** Bytes per second. */
  readonly upload_limit?: number
}

export interface V1PeerState {
  readonly progress: number
  readonly seeding: boolean
  readonly uploaded: number
  readonly downloaded: number
  readonly peers: number
}

export interface V1Peer {
  readonly address: string
  readonly infohash: string
  readonly torrent: string
  until(what: (state: V1PeerState) => boolean, timeoutMs?: number): Promise<V1PeerState>
  stop(): Promise<void>
}

/** libtorrent as a BitTorrent v1 peer on 127.0.0.1. */
export async function startV1Peer(options: V1PeerOptions): Promise<V1Peer> {
  const child = spawn(PYTHON, [SCRIPT, JSON.stringify(options)], { stdio: ['pipe', 'pipe', 'inherit'] })
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const lines = createInterface({ input: child.stdout })
  const listeners = new Set<(state: V1PeerState) => void>()
  const first = Promise.withResolvers<{ port: number; infohash: string; torrent?: string }>()
  child.once('exit', (code) => first.reject(new Error(`the v1 peer ended with ${code}`)))
  lines.on('line', (line) => {
    const message = JSON.parse(line) as Record<string, unknown>
    if ('port' in message) first.resolve(message as { port: number; infohash: string })
    else for (const listener of listeners) listener(message as unknown as V1PeerState)
  })
  const { port, infohash, torrent } = await first.promise
  return {
    address: `127.0.0.1:${port}`,
    infohash,
    torrent: torrent ?? options.torrent ?? '',
    until: (what, timeoutMs = 60_000) =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(() => {
          listeners.delete(listener)
          reject(new Error('the v1 peer did not get there in time'))
        }, timeoutMs)
        const listener = (state: V1PeerState) => {
          if (!what(state)) return
          clearTimeout(timer)
          listeners.delete(listener)
          resolve(state)
        }
        listeners.add(listener)
      }),
    stop: async () => {
      child.stdin.end()
      await ended
    }
  }
}
