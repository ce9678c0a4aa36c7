import * as Type from 'typebox'
import { CompanionsPinSchema, DigestSchema, InfohashSchema, TimestampSchema } from './fields.ts'
import { DamagedRecordSchema } from './inventory.ts'
import { bytes, count, flag, listOf, named, text } from './schema.ts'

/** One torrent of the swarm client. */
export const TorrentStatusSchema = named('TorrentStatus', {
  infohash: text('`btmh:1220<hex>`; `btih:<40 hex>` for a torrent of the catalog'),
  name: Type.String(),
  manifestDigest: Type.Optional(DigestSchema),
  ref: Type.Optional(text('a local name of the artifact, `ns/name:quant`')),
  state: Type.Enum(['verifying', 'fetching', 'seeding']),
  sizeBytes: Type.Optional(bytes()),
  peers: count(),
  downBytesPerSecond: bytes(),
  upBytesPerSecond: bytes(),
  uploadedBytes: bytes()
})
export type TorrentStatus = Type.Static<typeof TorrentStatusSchema>

/** A connection of the BitTorrent v2 client (additive). */
export const ConnectedPeerSchema = named('ConnectedPeer', {
  infohash: text('of the torrent'),
  manifestDigest: DigestSchema,
  address: text('`host:port`'),
  client: Type.Optional(text('as it calls itself')),
  source: Type.Enum(['named', 'found', 'incoming'], {
    description:
      'named by the owner or a link; found by a tracker, the DHT, the local network or another peer; or it connected to us'
  }),
  have: Type.Optional(
    Type.Number({ description: 'share of the artifact that it has, 0 to 1; absent until it says so' })
  ),
  downBytesPerSecond: bytes(),
  upBytesPerSecond: bytes()
})
export type ConnectedPeer = Type.Static<typeof ConnectedPeerSchema>

/** `GET /v1/peers` (additive). */
export const PeerListSchema = named('PeerList', {
  peers: listOf(ConnectedPeerSchema, 'at most 500, the busiest first'),
  more: count('connections that are not listed')
})
export type PeerList = Type.Static<typeof PeerListSchema>

/** An artifact that is complete but not announced, and the reason. */
export const HeldBackSchema = named('HeldBack', {
  manifestDigest: DigestSchema,
  ref: Type.Optional(Type.String()),
  reason: Type.String()
})
export type HeldBack = Type.Static<typeof HeldBackSchema>

/** The BitTorrent v2 client: what it shares and fetches, where it listens. Rates are smoothed over seconds. */
export const SwarmStatusSchema = named('SwarmStatus', {
  enabled: Type.Boolean(),
  seed: flag('`[swarm] seed`'),
  seeding: count('artifacts that are announced'),
  heldBack: Type.Array(HeldBackSchema),
  verifying: Type.Optional(
    Type.Object(
      { artifactsDone: count(), artifactsTotal: count(), bytesDone: bytes(), bytesTotal: bytes() },
      { description: 'the re-hash at start-up, while it runs' }
    )
  ),
  torrents: Type.Array(TorrentStatusSchema),
  peers: count(),
  downBytesPerSecond: bytes(),
  upBytesPerSecond: bytes(),
  uploadLimitBytesPerSecond: Type.Optional(bytes('`[swarm] upload_limit`; absent without one')),
  peerAddress: Type.Optional(text('`host:port` that is listened on')),
  webseedAddress: Type.Optional(text('`host:port` that is listened on')),
  dhtPort: Type.Optional(Type.Integer({ description: 'UDP port of the DHT node; absent when the DHT is off' })),
  seedOnImport: Type.Optional(flag('true: imports are shared at once; absent: from the next start on')),
  signedWebseeds: Type.Optional(
    Type.Array(
      Type.Object({
        url: text('of `[webseed."URL"]`'),
        credentialsFile: Type.Optional(text("absent: the key of the daemon's environment")),
        problem: Type.Optional(text('why the key cannot be used now'))
      }),
      { description: 'absent without any' }
    )
  )
})
export type SwarmStatus = Type.Static<typeof SwarmStatusSchema>

/** The BitTorrent v1 swarms of catalog imports, which continue to be seeded. */
export const CatalogStatusSchema = named('CatalogStatus', {
  torrents: Type.Array(TorrentStatusSchema),
  peers: count(),
  upBytesPerSecond: bytes(),
  peerAddress: Type.Optional(text('`host:port` that is listened on, once a BitTorrent v1 swarm was joined'))
})
export type CatalogStatus = Type.Static<typeof CatalogStatusSchema>

const leftovers = (description: string) => Type.Object({ files: count(), bytes: bytes() }, { description })

/** `GET /v1/status` (additive). */
export const StatusSchema = named('Status', {
  pid: Type.Integer(),
  version: Type.String(),
  root: text('absolute path of the store'),
  startedAt: TimestampSchema,
  jobs: Type.Object({ waiting: count(), fetching: count(), done: count(), failed: count() }),
  store: Type.Object({
    id: Type.Optional(text("the store's own UUID, wherever its folder is")),
    blobs: count(),
    bytes: bytes(),
    freeBytes: Type.Optional(bytes()),
    maxBytes: Type.Optional(bytes('`[store] max_bytes`')),
    minFreeBytes: Type.Optional(bytes('`[store] min_free`; absent for 0')),
    unfinished: Type.Optional(leftovers('what was written of downloads that have not ended; absent without any')),
    quarantined: Type.Optional(leftovers('corrupt blobs that were moved aside; absent without any'))
  }),
  swarm: SwarmStatusSchema,
  catalog: Type.Optional(CatalogStatusSchema),
  damaged: Type.Optional(
    listOf(DamagedRecordSchema, 'records of the state that could not be read a few seconds ago; absent without any')
  ),
  downloadLimitBytesPerSecond: Type.Optional(bytes('`[network] download_limit`; absent without one')),
  seedLocal: Type.Optional(flag('`[swarm] seed_local`; absent while nobody has decided, which means true'))
})
export type Status = Type.Static<typeof StatusSchema>

const RememberedIn = Type.Optional(text('the configuration file that remembers it'))

/** `PUT /v1/seed` (additive). */
export const SeedResultSchema = named('SeedResult', { seed: Type.Boolean(), file: RememberedIn })
export type SeedResult = Type.Static<typeof SeedResultSchema>

/** `PUT /v1/upload-limit` (additive). */
export const UploadLimitResultSchema = named('UploadLimitResult', { bytesPerSecond: bytes(), file: RememberedIn })
export type UploadLimitResult = Type.Static<typeof UploadLimitResultSchema>

/** `PUT /v1/download-limit` (additive). */
export const DownloadLimitResultSchema = named('DownloadLimitResult', { bytesPerSecond: bytes(), file: RememberedIn })
export type DownloadLimitResult = Type.Static<typeof DownloadLimitResultSchema>

/** `PUT /v1/seed-local` (additive). */
export const SeedLocalResultSchema = named('SeedLocalResult', {
  seedLocal: Type.Boolean(),
  file: RememberedIn
})
export type SeedLocalResult = Type.Static<typeof SeedLocalResultSchema>

/** `GET /v1/share` (additive): everything another node needs to import this artifact. */
export const ShareResultSchema = named('ShareResult', {
  ref: Type.String(),
  manifestDigest: DigestSchema,
  infohash: InfohashSchema,
  name: text('name of the torrent'),
  magnet: text('with `ws=` for each webseed and `x.pe=` for each peer'),
  webseeds: Type.Array(Type.String()),
  peers: Type.Array(Type.String()),
  trackers: Type.Array(Type.String()),
  announced: flag('whether the artifact is being served to the swarm now'),
  companions: Type.Optional({
    ...CompanionsPinSchema,
    description: 'its companions, if others may have them: announced with it (additive)'
  }),
  note: Type.Optional(text('why it is not announced, or what limits who can reach it')),
  command: text('what to type on the other side')
})
export type ShareResult = Type.Static<typeof ShareResultSchema>
