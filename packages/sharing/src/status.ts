import type { ArtifactSwarm, JoinedArtifact } from './artifact-swarm.ts'

/** An artifact that is not announced. */
export interface HeldBack {
  readonly manifestDigest: string
  readonly reason: string
}

/** How far the verification at the start is. */
export interface Verifying {
  readonly artifactsDone: number
  readonly artifactsTotal: number
  readonly bytesDone: number
  readonly bytesTotal: number
}

/** An artifact in its swarm. */
interface TorrentStatus {
  readonly infohash: string
  readonly name: string
  readonly manifestDigest: string
  readonly state: 'verifying' | 'seeding' | 'fetching'
  readonly sizeBytes: number
  readonly peers: number
  readonly downBytesPerSecond: number
  readonly upBytesPerSecond: number
  readonly uploadedBytes: number
}

/** All of them, and their sums. */
export interface TorrentsStatus {
  readonly torrents: TorrentStatus[]
  readonly seeding: number
  readonly peers: number
  readonly downBytesPerSecond: number
  readonly upBytesPerSecond: number
}

/** A connection with a peer. */
export interface ConnectedPeer {
  /** Of the torrent. */
  readonly infohash: string
  readonly manifestDigest: string
  /** `host:port` */
  readonly address: string
  /** As it calls itself. */
  readonly client?: string
  /** Named by the owner or a link, found by a tracker, the DHT, the local network or another peer, or connected to us. */
  readonly source: 'named' | 'found' | 'incoming'
  /** The share of the artifact that it has, 0 to 1; absent while it has not said so. */
  readonly have?: number
  readonly downBytesPerSecond: number
  readonly upBytesPerSecond: number
}

/** Most that are listed. */
const MAX_PEERS = 500

const SOURCES = { user: 'named', discovery: 'found', incoming: 'incoming' } as const

/** The connections of all torrents, the busiest first, and how many more there are. */
export function connectedPeers({ joined }: Pick<ArtifactSwarm, 'joined'>): {
  readonly peers: ConnectedPeer[]
  readonly more: number
} {
  const all = [...joined].flatMap(([manifestDigest, { torrent, handle }]) =>
    handle.peers().map(({ address, client, source, have, downloadRate, uploadRate }) => ({
      infohash: torrent.infohashText,
      manifestDigest,
      address,
      ...(client !== undefined && { client }),
      source: SOURCES[source],
      ...(have !== undefined && { have }),
      downBytesPerSecond: Math.round(downloadRate),
      upBytesPerSecond: Math.round(uploadRate)
    }))
  )
  const rateOf = (peer: ConnectedPeer): number => peer.downBytesPerSecond + peer.upBytesPerSecond
  const peers = all.sort((a, b) => rateOf(b) - rateOf(a)).slice(0, MAX_PEERS)
  return { peers, more: all.length - peers.length }
}

/** Asks every torrent. */
export function torrentsStatus({ joined }: Pick<ArtifactSwarm, 'joined'>): TorrentsStatus {
  const torrents = [...joined].map(([digest, artifact]) => torrentStatus(digest, artifact))
  const sum = (of: (torrent: TorrentStatus) => number): number =>
    torrents.reduce((total, torrent) => total + of(torrent), 0)
  return {
    torrents,
    seeding: [...joined.values()].filter(({ seeding }) => seeding).length,
    peers: sum(({ peers }) => peers),
    downBytesPerSecond: sum(({ downBytesPerSecond }) => downBytesPerSecond),
    upBytesPerSecond: sum(({ upBytesPerSecond }) => upBytesPerSecond)
  }
}

function torrentStatus(manifestDigest: string, { torrent, handle, seeding }: JoinedArtifact): TorrentStatus {
  const { state, peers, downloadRate, uploadRate, uploadedBytes } = handle.progress()
  return {
    infohash: torrent.infohashText,
    name: torrent.name,
    manifestDigest,
    state: state === 'checking' ? 'verifying' : seeding || state === 'seeding' ? 'seeding' : 'fetching',
    sizeBytes: torrent.totalBytes,
    peers,
    downBytesPerSecond: Math.round(downloadRate),
    upBytesPerSecond: Math.round(uploadRate),
    uploadedBytes
  }
}
