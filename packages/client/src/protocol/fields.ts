import * as Type from 'typebox'

/** Schemas of small values within bodies and payloads. The daemon checks their finer grammar. */

export const DigestSchema = Type.String({
  pattern: '^sha256:[0-9a-f]{64}$',
  description: '`sha256:` and 64 lower-case hex characters'
})

/**
 * The infohash of a BitTorrent v2 torrent as the contract spells it: multihash code and length (`1220`) followed by the
 * SHA-256.
 */
export const InfohashSchema = Type.String({
  pattern: '^btmh:1220[0-9a-f]{64}$',
  description: '`btmh:1220` and the 64 lower-case hex characters of a BitTorrent v2 infohash'
})

/** What lies beside an artifact, as another node needs it. The grammar of a request's is checked by the daemon. */
export const CompanionsPinSchema = Type.Object({
  digest: Type.String({ description: 'the pin of the document, `sha256:<hex>`' }),
  infohash: Type.String({ description: '`btmh:1220<hex>`' })
})

/** A reference in a request body. It has no pattern: the daemon checks the grammar, with a better message. */
export const RefSchema = Type.String({
  description: 'canonical reference, `svc:///ns/name[:sel][@digest]`, at most 512 bytes'
})

export const CountSchema = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })

export const BytesSchema = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: 'bytes' })

/** Where an artifact came from, and what it follows there. */
export const OriginSchema = Type.Object(
  {
    kind: Type.String({ description: '`local`, `hf`, `catalog`, `oci` or `bt`' }),
    repo: Type.Optional(Type.String({ description: '`org/name`, as its source spells it' })),
    revision: Type.Optional(
      Type.String({ description: 'the branch or tag that it follows; absent for one that was imported by its commit' })
    ),
    commit: Type.Optional(Type.String({ description: '40 hex' }))
  },
  { title: 'Origin' }
)
/** A value of {@link OriginSchema}. */
export type Origin = Type.Static<typeof OriginSchema>

export const TimestampSchema = Type.String({ description: 'UTC, RFC 3339, with fractional seconds' })

export const PeerListSchema = Type.Array(Type.String(), { description: '`host:port` of peers' })
