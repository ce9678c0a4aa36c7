import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  encodeBencode,
  encodeTorrent,
  leafLayer,
  parsePieceLayers,
  parseTorrent,
  pieceLayer,
  piecesRoot,
  RawBencode,
  toHex
} from '@svc/metainfo'
import type { Sha256Digest } from '@svc/ref'
import { describe, expect, test } from 'vitest'
import { parseSealedManifest, sealManifest } from '../src/manifest.ts'
import { manifestPath, pieceLayersOf, pieceLengthFor, torrentOf } from '../src/torrent.ts'
import type { ManifestFile } from '../src/types.ts'
import { errorOf } from './manifest-error.ts'
import { toBytes, vectors } from './vectors.ts'

const PYTHON = '/usr/bin/python3'
const installed = spawnSync(PYTHON, ['-c', 'import libtorrent']).status === 0
const skipLibtorrent = !installed && process.env.SVC_REQUIRE_INTEROP !== '1'

/** Infohash and files that libtorrent reads from each .torrent. */
function libtorrentReads(torrents: readonly Uint8Array[]): { infohash: string; files: [string, number, string][] }[] {
  const script = `
import json, sys
import libtorrent as lt
out = []
for line in sys.stdin:
    info = lt.torrent_info(bytes.fromhex(line.strip()))
    files = info.files()
    pad = lt.file_flags_t.flag_pad_file
    out.append({'infohash': str(info.info_hashes().v2), 'files': [
        [files.file_path(i), files.file_size(i), str(files.root(i))]
        for i in range(info.num_files()) if not files.file_flags(i) & pad]})
print(json.dumps(out))`
  const run = spawnSync(PYTHON, ['-c', script], {
    input: torrents.map((bytes) => `${toHex(bytes)}\n`).join(''),
    encoding: 'utf8',
    maxBuffer: 2 ** 28
  })
  if (run.status !== 0) throw new Error(`libtorrent helper failed: ${run.stderr}`, { cause: run.error })
  return JSON.parse(run.stdout)
}

test.each(vectors.pieceLengths)('piece length: $name', ({ sizes, pieceLength }) => {
  expect(pieceLengthFor(sizes)).toBe(pieceLength)
})

test.each(vectors.manifests)('vector: $name', ({ bytes, digest, torrent: expected, files }) => {
  const torrent = torrentOf(parseSealedManifest(toBytes(bytes)))
  expect(torrent.name).toBe(expected.name)
  expect(torrent.infohashText).toBe(expected.infohash)
  expect(torrent.pieceLength).toBe(expected.pieceLength)
  expect(torrent.files.map((file) => file.path)).toEqual(expected.paths)
  expect(torrent.manifestDigest).toBe(digest)
  for (const file of files) {
    const own = torrent.files.find(({ path }) => path === file.name)!
    expect([own.digest, own.length]).toEqual([file.digest, file.size])
    expect(own.piecesRoot && `sha256:${toHex(own.piecesRoot)}`).toBe(file.bt?.merkleRoot)
  }
  const manifest = torrent.files.find(({ path }) => path === `manifest/sha256-${digest.slice(7)}`)!
  expect([manifest.digest, manifest.length]).toEqual([digest, toBytes(bytes).length])
  expect(manifest.piecesRoot).toEqual(piecesRoot(leafLayer(toBytes(bytes)), toBytes(bytes).length))
})

test('unknown fields of a manifest change its torrent through the manifest alone', () => {
  const { bytes } = vectors.manifests[0]!
  const plain = torrentOf(parseSealedManifest(toBytes(bytes)))
  const more = torrentOf(parseSealedManifest(toBytes(bytes.replace(/\}$/, ',"zzz":1}'))))
  expect(more.infohashText).not.toBe(plain.infohashText)
  expect(more.files.length).toBe(plain.files.length)
})

/** An artifact of real bytes: a weights file of 2 MiB + 1, twins, an empty file, and a manifest larger than a piece. */
function realArtifact() {
  const blob = (size: number, seed: number): Uint8Array => new Uint8Array(size).map((_, i) => (i * seed) >>> 5)
  const layers = new Map<string, Uint8Array>()
  const leaves = new Map<string, Uint8Array>()
  const file = (kind: ManifestFile['kind'], name: string, bytes: Uint8Array, more: object = {}): ManifestFile => {
    const digest = `sha256:${createHash('sha256').update(bytes).digest('hex')}` as Sha256Digest
    if (bytes.length === 0) return { kind, name, digest, size: 0, ...more }
    const own = leafLayer(bytes)
    const root = toHex(piecesRoot(own, bytes.length))
    leaves.set(root, own)
    layers.set(root, pieceLayer(own, bytes.length, 2 ** 20))
    return { kind, name, digest, size: bytes.length, bt: { merkleRoot: `sha256:${root}` as Sha256Digest }, ...more }
  }
  const sealed = sealManifest(
    [
      file('config', 'modelconfig.json', blob(300, 3)),
      file('weights.gguf', 'ü/model-q4_0.gguf', blob(2 ** 21 + 1, 5)),
      file('weights.gguf', 'twin-q4_0.gguf', blob(2 ** 21 + 1, 5)),
      file('code', 'modeling_x.py', blob(0, 1), { role: 'model' })
    ],
    { 'svc.license.file.LICENSE': 'licence '.repeat(140_000) }
  )
  return { sealed, torrent: torrentOf(sealed), layers }
}

describe('an artifact of real bytes', () => {
  const { sealed, torrent, layers } = realArtifact()

  test('piece layers: those of the files, and the manifest’s own', () => {
    expect(sealed.bytes.length).toBeGreaterThan(torrent.pieceLength)
    const bytes = pieceLayersOf(torrent, layers)
    const checked = parsePieceLayers(bytes, torrent)
    expect(checked.missing).toEqual([])
    expect(checked.layers.size).toBe(2)
    const own = torrent.files.find(({ path }) => path === manifestPath(sealed.digest))!
    expect(checked.layers.get(toHex(own.piecesRoot!))).toEqual(
      pieceLayer(leafLayer(sealed.bytes), own.length, torrent.pieceLength)
    )
  })

  test('a missing or wrong layer is refused', () => {
    expect(errorOf(() => pieceLayersOf(torrent, new Map()))).toBe('E_INVALID torrent')
    const bad = new Map([...layers].map(([root, layer]) => [root, layer.map((byte) => byte ^ 1)]))
    expect(errorOf(() => pieceLayersOf(torrent, bad))).toBe('E_INVALID torrent')
  })

  test('our own parser reads the .torrent', () => {
    const { layers: all } = parsePieceLayers(pieceLayersOf(torrent, layers), torrent)
    const parsed = parseTorrent(encodeTorrent(torrent, all))
    expect(parsed.info.infohash).toEqual(torrent.infohash)
    expect(parsed.pieceLayers.missing).toEqual([])
  })

  test.skipIf(skipLibtorrent)('libtorrent computes the same infohashes, files and roots', () => {
    const golden = vectors.manifests.map(({ bytes }) => torrentOf(parseSealedManifest(toBytes(bytes))))
    const { layers: all } = parsePieceLayers(pieceLayersOf(torrent, layers), torrent)
    const read = libtorrentReads([
      encodeTorrent(torrent, all),
      ...golden.map(({ infoBytes }) => encodeBencode({ info: new RawBencode(infoBytes) }))
    ])
    for (const [i, own] of [torrent, ...golden].entries()) {
      expect(`btmh:1220${read[i]!.infohash}`).toBe(own.infohashText)
      expect(read[i]!.files).toEqual(
        own.files.map((file) => [
          `${own.name}/${file.path}`,
          file.length,
          file.piecesRoot ? toHex(file.piecesRoot) : '0'.repeat(64)
        ])
      )
    }
    for (const [i, { torrent: expected }] of vectors.manifests.entries()) {
      expect(`btmh:1220${read[i + 1]!.infohash}`).toBe(expected.infohash)
    }
  })
})

test('contents that no torrent can hold are refused', () => {
  const vast = vectors.manifests[0]!
  const files = vast.files.map((file) => (file.kind === 'config' ? file : { ...file, size: 2 ** 48 - 10_000 }))
  expect(errorOf(() => torrentOf(sealManifest(files)))).toBe('E_INVALID torrent')
})
