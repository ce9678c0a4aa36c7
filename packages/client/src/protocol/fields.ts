import Type from 'typebox'

/** Schemas of the small values that bodies and payloads are made of. Grammar beyond them is the daemon's to check. */

export const DigestSchema = Type.String({
  pattern: '^sha256:[0-9a-f]{64}$',
  description: '`sha256:` and 64 lower-case hex characters'
})

/**
 * The infohash of a BitTorrent v2 torrent as the contract spells it: multihash code and length (`1220`) before the
 * SHA-256.
 */
export const InfohashSchema = Type.String({
  pattern: '^btmh:1220[0-9a-f]{64}$',
  description: '`btmh:1220` and the 64 lower-case hex characters of a BitTorrent v2 infohash'
})

/** Text in request bodies: the daemon checks the grammar and gives the better message, so no pattern here. */
export const RefSchema = Type.String({
  description: 'canonical reference, `svc:///ns/name[:sel][@digest]`, at most 512 bytes'
})

export const CountSchema = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })

export const BytesSchema = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: 'bytes' })

export const TimestampSchema = Type.String({ description: 'UTC, RFC 3339, with fractional seconds' })

export const PeerListSchema = Type.Array(Type.String(), { description: '`host:port` of peers' })
