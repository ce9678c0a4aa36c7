import { isPieceLength, METAINFO_BOUNDS, tryParseInfohash } from '@svc/metainfo'
import type { Sha256Digest } from '@svc/ref'
import { parseCanonical, sealDocument } from './canonical.ts'
import type { ManifestErrorCode } from './errors.ts'
import { FieldReader } from './field.ts'
import { torrentName, torrentOf } from './torrent.ts'
import type { DistributionRecord, Manifest, Sealed } from './types.ts'

/** Largest distribution record (spec doc.15): ours have some 500 bytes. */
const MAX_RECORD_BYTES = 64 * 1024

function checkRecord(value: unknown, code: ManifestErrorCode): DistributionRecord {
  const read = new FieldReader(code)
  const document = read.object(value, 'the record')
  read.constant(document.schemaVersion, 'schemaVersion', 1)
  read.constant(document.artifactType, 'artifactType', 'distribution')
  const manifestDigest = read.digest(document.manifestDigest, 'manifestDigest')
  const torrent = read.object(document.torrent, 'torrent')
  if (tryParseInfohash(read.text(torrent.infohash, 'torrent.infohash')) === undefined)
    read.fail('infohash', 'torrent.infohash must be "btmh:1220" and 64 lower-case hex characters')
  if (torrent.name !== torrentName(manifestDigest))
    read.fail('torrent-name', `torrent.name must be ${torrentName(manifestDigest)}, after the manifest's digest`)
  const pieceLength = read.count(torrent.pieceLength, 'torrent.pieceLength')
  if (!isPieceLength(pieceLength) || pieceLength < 2 ** 20 || pieceLength > METAINFO_BOUNDS.pieceLengthBytes)
    read.fail('piece-length', 'torrent.pieceLength must be a power of two from 1 MiB to 512 MiB')
  read.digest(torrent.pieceLayersDigest, 'torrent.pieceLayersDigest')
  return value as DistributionRecord
}

/**
 * Seals the distribution record of a manifest (spec doc.15, doc.16); infohash, name and piece length follow from the manifest.
 * @throws ManifestError `E_INVALID` as `torrentOf`, or `field` for a malformed digest.
 */
export function sealRecord({
  manifest,
  pieceLayersDigest
}: {
  readonly manifest: Sealed<Manifest>
  /** Digest of the blob made from the result of `pieceLayersOf`. */
  readonly pieceLayersDigest: Sha256Digest
}): Sealed<DistributionRecord> {
  const torrent = torrentOf(manifest)
  const document = {
    schemaVersion: 1,
    artifactType: 'distribution',
    manifestDigest: manifest.digest,
    torrent: {
      infohash: torrent.infohashText,
      name: torrent.name,
      pieceLength: torrent.pieceLength,
      pieceLayersDigest
    }
  }
  return sealDocument(checkRecord(document, 'E_INVALID'), MAX_RECORD_BYTES)
}

/**
 * Parses the bytes of a distribution record strictly; unknown fields are kept. @throws ManifestError `E_CORRUPTION`.
 */
export function parseRecord(bytes: Uint8Array): DistributionRecord {
  return checkRecord(parseCanonical(bytes, MAX_RECORD_BYTES), 'E_CORRUPTION')
}
