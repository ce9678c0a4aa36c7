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
