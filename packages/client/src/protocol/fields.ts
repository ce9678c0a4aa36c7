import * as Type from 'typebox'
import { digest, listOf, named, text } from './schema.ts'

/** Schemas of small values within bodies and payloads. The daemon checks their finer grammar. */

export const DigestSchema = digest()

/** A BitTorrent v2 infohash as the contract spells it: multihash code and length (`1220`), then the SHA-256. */
export const InfohashSchema = Type.String({
  pattern: '^btmh:1220[0-9a-f]{64}$',
  description: '`btmh:1220` and the 64 lower-case hex characters of a BitTorrent v2 infohash'
})

/** The companions of an artifact, as another node needs them. In requests, the daemon checks the grammar. */
export const CompanionsPinSchema = Type.Object({
  digest: text('the pin of the document, `sha256:<hex>`'),
  infohash: text('`btmh:1220<hex>`')
})

/** A reference in a request body. It has no pattern: the daemon checks the grammar, with a better message. */
export const RefSchema = text('canonical reference, `svc:///ns/name[:sel][@digest]`, at most 512 bytes')

/** Where an artifact came from, and what it follows there. */
export const OriginSchema = named('Origin', {
  kind: text('`local`, `hf`, `catalog`, `oci` or `bt`'),
  repo: Type.Optional(text('`org/name`, as its source spells it')),
  revision: Type.Optional(text('the branch or tag that it follows; absent for one that was imported by its commit')),
  commit: Type.Optional(text('40 hex'))
})
export type Origin = Type.Static<typeof OriginSchema>

export const TimestampSchema = text('UTC, RFC 3339, with fractional seconds')

export const PeerListSchema = listOf(Type.String(), '`host:port` of peers')
