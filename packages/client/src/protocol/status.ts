import * as Type from 'typebox'
import {
  BytesSchema,
  CompanionsPinSchema,
  CountSchema,
  DigestSchema,
  InfohashSchema,
  TimestampSchema
} from './fields.ts'
import { DamagedRecordSchema } from './inventory.ts'

/** One torrent of the swarm client. */
export const TorrentStatusSchema = Type.Object(
  {
    infohash: Type.String({ description: '`btmh:1220<hex>`; `btih:<40 hex>` for a torrent of the catalog' }),
    name: Type.String(),
    manifestDigest: Type.Optional(DigestSchema),
    ref: Type.Optional(Type.String({ description: 'a local name of the artifact, `ns/name:quant`' })),
    state: Type.Union([Type.Literal('verifying'), Type.Literal('fetching'), Type.Literal('seeding')]),
    sizeBytes: Type.Optional(BytesSchema),
    peers: CountSchema,
    downBytesPerSecond: BytesSchema,
    upBytesPerSecond: BytesSchema,
    uploadedBytes: BytesSchema
  },
  { title: 'TorrentStatus' }
)
/** A value of {@link TorrentStatusSchema}. */
export type TorrentStatus = Type.Static<typeof TorrentStatusSchema>

/** An artifact that is complete but not announced, and the reason. */
export const HeldBackSchema = Type.Object(
  { manifestDigest: DigestSchema, ref: Type.Optional(Type.String()), reason: Type.String() },
  { title: 'HeldBack' }
)
/** A value of {@link HeldBackSchema}. */
export type HeldBack = Type.Static<typeof HeldBackSchema>

/**
 * The BitTorrent v2 client: what it shares, what it fetches, where it listens. Rates are smoothed over the last
 * seconds.
 */
export const SwarmStatusSchema = Type.Object(
  {
    enabled: Type.Boolean(),
    seed: Type.Boolean({ description: '`[swarm] seed`' }),
    seeding: Type.Integer({ minimum: 0, description: 'artifacts that are announced' }),
    heldBack: Type.Array(HeldBackSchema),
    verifying: Type.Optional(
      Type.Object(
        { artifactsDone: CountSchema, artifactsTotal: CountSchema, bytesDone: BytesSchema, bytesTotal: BytesSchema },
        { description: 'the re-hash at start-up, while it runs' }
      )
    ),
    torrents: Type.Array(TorrentStatusSchema),
    peers: CountSchema,
    downBytesPerSecond: BytesSchema,
    upBytesPerSecond: BytesSchema,
    peerAddress: Type.Optional(Type.String({ description: '`host:port` that is listened on' })),
    webseedAddress: Type.Optional(Type.String({ description: '`host:port` that is listened on' })),
    dhtPort: Type.Optional(Type.Integer({ description: 'UDP port of the DHT node; absent when the DHT is off' })),
    seedOnImport: Type.Optional(
      Type.Boolean({ description: 'true: imports are shared at once; absent: from the next start on' })
    ),
    signedWebseeds: Type.Optional(
      Type.Array(
        Type.Object({
          url: Type.String({ description: 'of `[webseed."URL"]`' }),
          credentialsFile: Type.Optional(Type.String({ description: "absent: the key of the daemon's environment" })),
          problem: Type.Optional(Type.String({ description: 'why the key cannot be used now' }))
        }),
        { description: 'absent where none is configured' }
      )
    )
  },
  { title: 'SwarmStatus' }
)
/** A value of {@link SwarmStatusSchema}. */
export type SwarmStatus = Type.Static<typeof SwarmStatusSchema>

/** The BitTorrent v1 swarms of catalog imports, which continue to be seeded. */
export const CatalogStatusSchema = Type.Object(
  {
    torrents: Type.Array(TorrentStatusSchema),
    peers: CountSchema,
    upBytesPerSecond: BytesSchema,
    peerAddress: Type.Optional(
      Type.String({ description: '`host:port` that is listened on, once a BitTorrent v1 swarm was joined' })
    )
  },
  { title: 'CatalogStatus' }
)
/** A value of {@link CatalogStatusSchema}. */
export type CatalogStatus = Type.Static<typeof CatalogStatusSchema>

/** `GET /v1/status` (additive). */
export const StatusSchema = Type.Object(
  {
    pid: Type.Integer(),
    version: Type.String(),
    root: Type.String({ description: 'absolute path of the store' }),
    startedAt: TimestampSchema,
    jobs: Type.Object({ waiting: CountSchema, fetching: CountSchema, done: CountSchema, failed: CountSchema }),
    store: Type.Object({
      id: Type.Optional(Type.String({ description: "the store's own UUID, wherever its folder is" })),
      blobs: CountSchema,
      bytes: BytesSchema,
      freeBytes: Type.Optional(BytesSchema)
    }),
    swarm: SwarmStatusSchema,
    catalog: Type.Optional(CatalogStatusSchema),
    damaged: Type.Optional(
      Type.Array(DamagedRecordSchema, {
        description: 'records of the state that cannot be read, looked at a few seconds ago; absent without any'
      })
    ),
    seedLocal: Type.Optional(
      Type.Boolean({ description: '`[swarm] seed_local`; absent while nobody has decided, which means true' })
    )
  },
  { title: 'Status' }
)
/** A value of {@link StatusSchema}. */
export type Status = Type.Static<typeof StatusSchema>

const RememberedIn = Type.Optional(Type.String({ description: 'the configuration file that remembers it' }))

/** `PUT /v1/seed` (additive). */
export const SeedResultSchema = Type.Object({ seed: Type.Boolean(), file: RememberedIn }, { title: 'SeedResult' })
/** A value of {@link SeedResultSchema}. */
export type SeedResult = Type.Static<typeof SeedResultSchema>

/** `PUT /v1/seed-local` (additive). */
export const SeedLocalResultSchema = Type.Object(
  {
    seedLocal: Type.Boolean(),
    file: RememberedIn
  },
  { title: 'SeedLocalResult' }
)
/** A value of {@link SeedLocalResultSchema}. */
export type SeedLocalResult = Type.Static<typeof SeedLocalResultSchema>

/** `GET /v1/share` (additive): everything another node needs to import this artifact. */
export const ShareResultSchema = Type.Object(
  {
    ref: Type.String(),
    manifestDigest: DigestSchema,
    infohash: InfohashSchema,
    name: Type.String({ description: 'name of the torrent' }),
    magnet: Type.String({ description: 'with `ws=` for each webseed and `x.pe=` for each peer' }),
    webseeds: Type.Array(Type.String()),
    peers: Type.Array(Type.String()),
    trackers: Type.Array(Type.String()),
    announced: Type.Boolean({ description: 'whether the artifact is being served to the swarm now' }),
    companions: Type.Optional({
      ...CompanionsPinSchema,
      description: 'what lies beside it, where others may have that: announced with it (additive)'
    }),
    note: Type.Optional(Type.String({ description: 'why not, or what limits who can reach it' })),
    command: Type.String({ description: 'what to type on the other side' })
  },
  { title: 'ShareResult' }
)
/** A value of {@link ShareResultSchema}. */
export type ShareResult = Type.Static<typeof ShareResultSchema>
