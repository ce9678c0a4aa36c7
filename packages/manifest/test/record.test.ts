import type { Sha256Digest } from '@svc/ref'
import { expect, test } from 'vitest'
import { canonicalBytes } from '../src/canonical.ts'
import { parseSealedManifest } from '../src/manifest.ts'
import { parseRecord, sealRecord } from '../src/record.ts'
import { errorOf } from './manifest-error.ts'
import { toBytes, toText, vectors } from './vectors.ts'

test.each(vectors.manifests)('vector: $name', ({ bytes, pieceLayersDigest, record, recordDigest }) => {
  const sealed = sealRecord({ manifest: parseSealedManifest(toBytes(bytes)), pieceLayersDigest })
  expect([toText(sealed.bytes), sealed.digest]).toEqual([record, recordDigest])
  expect(parseRecord(toBytes(record))).toEqual(sealed.document)
})

const record = parseRecord(toBytes(vectors.manifests[0]!.record))
const other = vectors.manifests[1]!.digest

test.each<[string, object]>([
  ['field', { schemaVersion: 0 }],
  ['field', { artifactType: 'model' }],
  ['field', { manifestDigest: 'x' }],
  ['torrent-name', { manifestDigest: other }],
  ['field', { torrent: [] }],
  ['field', { torrent: { ...record.torrent, infohash: 5 } }],
  ['infohash', { torrent: { ...record.torrent, infohash: 'btmh:1220' } }],
  ['infohash', { torrent: { ...record.torrent, infohash: record.torrent.infohash.toUpperCase() } }],
  ['torrent-name', { torrent: { ...record.torrent, name: 'svc-sha256-000000000000' } }],
  ['piece-length', { torrent: { ...record.torrent, pieceLength: 2 ** 19 } }],
  ['piece-length', { torrent: { ...record.torrent, pieceLength: 2 ** 30 } }],
  ['piece-length', { torrent: { ...record.torrent, pieceLength: 1_500_000 } }],
  ['field', { torrent: { ...record.torrent, pieceLength: '1048576' } }],
  ['field', { torrent: { ...record.torrent, pieceLayersDigest: '' } }]
])('refused when read with %s: %j', (reason, change) => {
  expect(errorOf(() => parseRecord(canonicalBytes({ ...record, ...change })))).toBe(`E_CORRUPTION ${reason}`)
})

test('unknown fields are kept', () => {
  const more = { ...record, torrent: { ...record.torrent, extra: 1 }, zzz: [] }
  expect(parseRecord(canonicalBytes(more))).toEqual(more)
})

test('a malformed digest is not sealed', () => {
  const manifest = parseSealedManifest(toBytes(vectors.manifests[0]!.bytes))
  expect(errorOf(() => sealRecord({ manifest, pieceLayersDigest: 'sha256:x' as Sha256Digest }))).toBe('E_INVALID field')
})
