import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { buildInfo } from '../../src/info-dictionary.ts'
import { toHex } from '../../src/infohash.ts'
import { formatMagnet, parseMagnet } from '../../src/magnet.ts'
import { leafLayer, pieceLayer, piecesRoot } from '../../src/merkle.ts'
import { filesWithLayers } from '../../src/piece-layers.ts'
import { encodeTorrent, parseTorrent } from '../../src/torrent-file.ts'
import { TORRENT_CASES } from '../malformed-torrents.ts'
import { seededBytes } from '../seeded-bytes.ts'
import { askLibtorrent, skipLibtorrent } from './libtorrent-metainfo.ts'

const KIB16 = 16_384
type Files = Readonly<Record<string, Uint8Array>>

const sizes = (pieceLength: number): Files =>
  Object.fromEntries(
    [0, 1, 16_383, 16_384, 16_385, pieceLength - 1, pieceLength, pieceLength + 1, 3 * pieceLength].map((size, i) => [
      `${i}-${size}.bin`,
      seededBytes(size, i + 1)
    ])
  )

const FOLDERS: readonly { readonly name: string; readonly pieceLength: number; readonly files: Files }[] = [
  { name: 'sizes-16k', pieceLength: KIB16, files: sizes(KIB16) },
  { name: 'sizes-64k', pieceLength: 4 * KIB16, files: sizes(4 * KIB16) },
  { name: 'sizes-1m', pieceLength: 64 * KIB16, files: sizes(64 * KIB16) },
  {
    name: 'piece-counts',
    pieceLength: KIB16,
    files: Object.fromEntries(
      [511, 512, 513, 1_024, 1_025].map((count) => [`${count}`, seededBytes(count * KIB16 - 5, count)])
    )
  },
  {
    name: 'twins',
    pieceLength: KIB16,
    files: {
      a: seededBytes(50_000),
      'b/a': seededBytes(50_000),
      'b/c': new Uint8Array(50_000),
      z: new Uint8Array(32_768)
    }
  },
  {
    name: 'ünïcode-模型',
    pieceLength: KIB16,
    files: {
      'ß/モデル.gguf': seededBytes(40_000),
      'a-b': seededBytes(9),
      'a/b': seededBytes(10),
      'a b/+&=#%.txt': seededBytes(11),
      '😀': seededBytes(3)
    }
  },
  { name: 'deep', pieceLength: KIB16, files: { [`${'d/'.repeat(31)}file`]: seededBytes(20_000), top: seededBytes(1) } }
]

function ours(name: string, pieceLength: number, files: Files) {
  const layers = new Map<string, Uint8Array>()
  const info = buildInfo({
    name,
    pieceLength,
    files: Object.entries(files).map(([path, bytes]) => {
      const leaves = leafLayer(bytes)
      const root = bytes.length > 0 ? piecesRoot(leaves, bytes.length) : undefined
      if (root !== undefined) layers.set(toHex(root), pieceLayer(leaves, bytes.length, pieceLength))
      return { path, length: bytes.length, piecesRoot: root }
    })
  })
  return { info, layers }
}

describe.skipIf(skipLibtorrent)('against libtorrent', () => {
  test('same files, same info dictionary, roots and piece layers; it loads our .torrent', () => {
    const root = mkdtempSync(join(tmpdir(), 'svc-metainfo-'))
    try {
      for (const { name, files } of FOLDERS) {
        for (const [path, bytes] of Object.entries(files)) {
          const full = join(root, name, path)
          mkdirSync(dirname(full), { recursive: true })
          writeFileSync(full, bytes, { mode: 0o644 })
        }
      }
      const made = FOLDERS.map(({ name, pieceLength, files }) => ours(name, pieceLength, files))
      const answers = askLibtorrent([
        ...FOLDERS.map(({ name, pieceLength }) => ({ create: join(root, name), pieceLength })),
        ...made.map(({ info, layers }) => ({ load: toHex(encodeTorrent(info, layers)) }))
      ])
      for (const [i, { name }] of FOLDERS.entries()) {
        const { info, layers } = made[i]!
        const created = answers[i]!
        expect(created.infoHex, name).toBe(toHex(info.infoBytes))
        expect(created.infohash, name).toBe(toHex(info.infohash))
        const roots = Object.fromEntries(
          info.files.map((file) => [file.path, file.piecesRoot ? toHex(file.piecesRoot) : null])
        )
        expect(created.roots, name).toEqual(roots)
        const needed = [...filesWithLayers(info).keys()].map((key) => [key, toHex(layers.get(key)!)])
        expect(created.layers, name).toEqual(Object.fromEntries(needed))
        const loaded = answers[FOLDERS.length + i]!
        expect(loaded.infohash, name).toBe(toHex(info.infohash))
        const none = '0'.repeat(64)
        expect(loaded.files, name).toEqual(
          info.files.map((file) => [
            `${name}/${file.path}`,
            file.length,
            file.piecesRoot ? toHex(file.piecesRoot) : none
          ])
        )
      }
    } finally {
      rmSync(root, { recursive: true })
    }
  })

  test('a single file', () => {
    const { info, layers } = ours('model.gguf', KIB16, { 'model.gguf': seededBytes(100_000) })
    expect(info.singleFile).toBe(true)
    const [loaded] = askLibtorrent([{ load: toHex(encodeTorrent(info, layers)) }])
    expect(loaded!.files).toEqual([['model.gguf', 100_000, toHex(info.files[0]!.piecesRoot!)]])
  })

  test('it reads our magnet links as we do', () => {
    const { info } = ours('x', KIB16, { x: seededBytes(10) })
    const text = formatMagnet({
      infohash: info.infohash,
      name: 'a b & ü',
      trackers: ['http://127.0.0.1/announce?k=v&l=%20', 'udp://127.0.0.1:1'],
      webseeds: ['http://127.0.0.1:8080/a%20b/']
    })
    const { infohash, name, trackers, webseeds } = parseMagnet(text)
    expect(askLibtorrent([{ magnet: text }])[0]).toEqual({ infohash: toHex(infohash), name, trackers, webseeds })
  })

  test('it agrees on good and malformed torrents, except where we are stricter', () => {
    const answers = askLibtorrent(TORRENT_CASES.map(({ bytes }) => ({ load: toHex(bytes) })))
    for (const [i, { name, bytes, libtorrent }] of TORRENT_CASES.entries()) {
      if (libtorrent === undefined) continue
      expect([name, answers[i]!.error === undefined ? 'loads' : 'refuses']).toEqual([name, libtorrent])
      if (libtorrent === 'loads') expect(answers[i]!.infohash).toBe(toHex(parseTorrent(bytes).info.infohash))
    }
  })
})
