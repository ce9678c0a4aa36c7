import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { encodeBencode } from '../src/bencode.ts'
import { compareBytes } from '../src/bencode-dictionary.ts'
import { MetainfoError } from '../src/errors.ts'
import { buildInfo, type InfoSpec, parseInfo } from '../src/info-dictionary.ts'
import { formatInfohash, parseInfohash, toHex, truncateInfohash, tryParseInfohash } from '../src/infohash.ts'
import { encodePieceLayers, parsePieceLayers } from '../src/piece-layers.ts'
import { encodeTorrent, parseTorrent } from '../src/torrent-file.ts'
import { errorOf } from './error-of.ts'
import { LAYER, ROOT, TORRENT_CASES } from './malformed-torrents.ts'

const spec = (change: Partial<InfoSpec> = {}): InfoSpec => ({
  name: 'folder',
  pieceLength: 65_536,
  files: [{ path: 'test1MB', length: 1_048_576, piecesRoot: ROOT }],
  ...change
})
/** Order of paths in a file tree: by the bytes of each segment, folder by folder. */
function comparePaths(a: string, b: string): number {
  const [left, right] = [a.split('/'), b.split('/')]
  for (let i = 0; i < Math.min(left.length, right.length); i++) {
    const order = compareBytes(Buffer.from(left[i]!), Buffer.from(right[i]!))
    if (order !== 0) return order
  }
  return left.length - right.length
}
const root = (byte: number): Uint8Array => new Uint8Array(32).fill(byte)

describe('malformed torrents, one defect each', () => {
  test.each(TORRENT_CASES.map(({ name, bytes, expected }) => [name, expected, bytes] as const))(
    '%s: %s',
    (_name, expected, bytes) => {
      expect(errorOf(() => parseTorrent(bytes)).replace('no error', 'loads')).toBe(expected)
    }
  )

  test('missing layers are named', () => {
    const { bytes } = TORRENT_CASES.find(({ name }) => name === 'incomplete piece layers')!
    expect(parseTorrent(bytes).pieceLayers).toEqual({ layers: new Map(), missing: [toHex(ROOT)] })
  })

  test('a hybrid has both infohashes', () => {
    const { info } = parseTorrent(TORRENT_CASES.find(({ name }) => name === 'hybrid')!.bytes)
    expect(toHex(info.infohashV1!)).toBe(createHash('sha1').update(info.infoBytes).digest('hex'))
    expect(info.files.map(({ path, firstPiece, pieceCount }) => [path, firstPiece, pieceCount])).toEqual([
      ['a', 0, 2],
      ['b', 2, 1]
    ])
  })
})

describe('building', () => {
  test('files are in tree order, pieces are counted per file', () => {
    const info = buildInfo(
      spec({
        files: [
          { path: 'b', length: 1, piecesRoot: root(1) },
          { path: 'a-b', length: 65_537, piecesRoot: root(2) },
          { path: 'a/z', length: 0 },
          { path: 'a/B', length: 65_536, piecesRoot: root(3) }
        ]
      })
    )
    expect(info.files.map(({ path, firstPiece, pieceCount }) => [path, firstPiece, pieceCount])).toEqual([
      ['a/B', 0, 1],
      ['a/z', 1, 0],
      ['a-b', 1, 2],
      ['b', 3, 1]
    ])
    expect([info.pieceCount, info.totalBytes, info.singleFile, info.private, info.infohashV1]).toEqual([
      4,
      131_074,
      false,
      false,
      undefined
    ])
    expect(toHex(info.infohash)).toBe(createHash('sha256').update(info.infoBytes).digest('hex'))
  })

  test.each<[string, Partial<InfoSpec>]>([
    ['E_METAINFO file-tree', { files: [] }],
    [
      'E_METAINFO file-tree',
      {
        files: [
          { path: 'a', length: 0 },
          { path: 'a', length: 0 }
        ]
      }
    ],
    [
      'E_METAINFO file-tree',
      {
        files: [
          { path: 'a', length: 0 },
          { path: 'a/b', length: 0 }
        ]
      }
    ],
    [
      'E_METAINFO file-tree',
      {
        files: [
          { path: 'a/b', length: 0 },
          { path: 'a', length: 0 }
        ]
      }
    ],
    ['E_METAINFO path-segment', { files: [{ path: '', length: 0 }] }],
    ['E_METAINFO path-segment', { files: [{ path: '/a', length: 0 }] }],
    ['E_METAINFO path-segment', { files: [{ path: 'a/../b', length: 0 }] }],
    ['E_METAINFO path-segment', { files: [{ path: '\ud800', length: 0 }] }],
    ['E_METAINFO path-depth', { files: [{ path: 'a/'.repeat(100_000), length: 0 }] }],
    ['E_METAINFO pieces-root', { files: [{ path: 'a', length: 1 }] }],
    ['E_METAINFO pieces-root', { files: [{ path: 'a', length: 0, piecesRoot: ROOT }] }],
    ['E_METAINFO file-length', { files: [{ path: 'a', length: 1.5, piecesRoot: ROOT }] }],
    ['E_METAINFO file-length', { files: [{ path: 'a', length: Number.NaN, piecesRoot: ROOT }] }],
    ['E_METAINFO name', { name: 'a/b' }],
    ['E_METAINFO name', { name: '\udc00' }],
    ['E_METAINFO piece-length', { pieceLength: 20_000 }],
    ['E_METAINFO piece-length', { pieceLength: 0.5 }]
  ])('refuses with %s: %j', (expected, change) => {
    expect(errorOf(() => buildInfo(spec(change)))).toBe(expected)
  })

  test('property: any order of files gives the same bytes, and reading them gives the files back', () => {
    const segment = fc.string({
      unit: fc.constantFrom('a', 'b', '-', '.x', 'é', '模', '😀', ' '),
      minLength: 1,
      maxLength: 3
    })
    const files = fc.uniqueArray(fc.tuple(fc.array(segment, { minLength: 1, maxLength: 3 }), fc.nat(200_000)), {
      maxLength: 8,
      minLength: 1,
      selector: ([path]) => path.join('/')
    })
    fc.assert(
      fc.property(files, fc.nat(), (entries, turn) => {
        const list = entries
          .map(([path, length]) => ({ path: path.join('/'), length, piecesRoot: length === 0 ? undefined : ROOT }))
          .filter((file, _i, all) => !all.some((other) => other.path.startsWith(`${file.path}/`)))
        const info = buildInfo(spec({ files: list }))
        const turned = [...list.slice(turn % list.length), ...list.slice(0, turn % list.length)].reverse()
        expect(buildInfo(spec({ files: turned })).infoBytes).toEqual(info.infoBytes)
        expect(parseInfo(info.infoBytes)).toEqual(info)
        expect(info.files.map((file) => file.path)).toEqual(list.map((file) => file.path).sort(comparePaths))
      })
    )
  })
})

describe('piece layers', () => {
  const info = buildInfo(spec())
  const layers = new Map([[toHex(ROOT), LAYER]])

  test('are only those that are needed, proven, and read back', () => {
    const bytes = encodePieceLayers(new Map([...layers, ['ff', LAYER]]), info)
    expect(bytes).toEqual(encodeBencode(new Map([[ROOT, LAYER]])))
    expect(parsePieceLayers(bytes, info)).toEqual({ layers, missing: [] })
  })

  test.each<[string, Uint8Array | undefined]>([
    ['E_METAINFO piece-layer-missing', undefined],
    ['E_METAINFO piece-layer-length', LAYER.subarray(32)],
    ['E_METAINFO piece-layer-root', LAYER.map((byte) => byte ^ 1)]
  ])('refuses with %s', (expected, layer) => {
    const given = new Map(layer === undefined ? [] : [[toHex(ROOT), layer]])
    expect(errorOf(() => encodePieceLayers(given, info))).toBe(expected)
  })

  test('property: a flipped bit in the encoded dictionary is refused', () => {
    const bytes = encodePieceLayers(layers, info)
    fc.assert(
      fc.property(fc.nat(bytes.length * 8 - 1), (flip) => {
        const bad = bytes.slice()
        bad[flip >>> 3]! ^= 1 << (flip & 7)
        expect(errorOf(() => parsePieceLayers(bad, info))).toMatch(/^E_(METAINFO piece-layer|BENCODE )/)
      })
    )
  })
})

describe('.torrent files', () => {
  const info = buildInfo(spec())
  const layers = new Map([[toHex(ROOT), LAYER]])

  test('written files are read back; unusable URLs among the hints are left out', () => {
    const trackers = [['http://127.0.0.1/announce'], ['udp://127.0.0.1:1', 'udp://127.0.0.1:2']]
    const webseeds = ['http://127.0.0.1:8080/', 'ftp://127.0.0.1/', 'nonsense']
    const torrent = parseTorrent(encodeTorrent(info, layers, { trackers, webseeds, createdBy: 'test' }))
    expect(torrent).toEqual({ info, pieceLayers: { layers, missing: [] }, trackers, webseeds: webseeds.slice(0, 1) })
    expect(parseTorrent(encodeTorrent(info, layers, { trackers: [['http://127.0.0.1/']] })).trackers).toEqual([
      ['http://127.0.0.1/']
    ])
    expect(parseTorrent(encodeTorrent(info, layers)).trackers).toEqual([])
  })

  test('the infohash covers the bytes as received, including unknown keys', () => {
    const more = encodeBencode({
      info: {
        'file tree': { a: { '': { length: 0 } } },
        'meta version': 2,
        name: 'a',
        'piece length': 16_384,
        zz: [1, {}]
      }
    })
    const parsed = parseTorrent(more).info
    expect(toHex(parsed.infohash)).toBe(createHash('sha256').update(more.subarray(7, -1)).digest('hex'))
    expect(parsed.singleFile).toBe(true)
  })

  test('size limits come before any parsing', () => {
    expect(errorOf(() => parseTorrent(new Uint8Array(10_000_001)))).toBe('E_METAINFO too-large')
    expect(errorOf(() => parseInfo(new Uint8Array(4 * 1024 * 1024 + 1)))).toBe('E_METAINFO too-large')
  })

  test('property: a mutated torrent loads or is refused with a code', () => {
    const originals = TORRENT_CASES.map(({ bytes }) => bytes)
    const edit = fc.record({
      at: fc.nat(),
      remove: fc.nat(5),
      insert: fc.oneof(
        fc.uint8Array({ maxLength: 4 }),
        fc.constantFrom('e', 'le', 'de', 'i-1e', '0:', 'd', 'l', '9999:').map((text) => new TextEncoder().encode(text))
      )
    })
    fc.assert(
      fc.property(fc.constantFrom(...originals), fc.array(edit, { minLength: 1, maxLength: 4 }), (original, edits) => {
        let bytes = original
        for (const { at, remove, insert } of edits) {
          const start = at % bytes.length
          bytes = Uint8Array.from([...bytes.subarray(0, start), ...insert, ...bytes.subarray(start + remove)])
          if (bytes.length === 0) return
        }
        try {
          parseTorrent(bytes)
        } catch (error) {
          expect(error).toBeInstanceOf(MetainfoError)
          expect((error as MetainfoError).code).toMatch(/^E_(METAINFO|BENCODE)$/)
        }
      }),
      { numRuns: 1_500 }
    )
  })
})

test('infohash texts', () => {
  const hash = Uint8Array.from({ length: 32 }, (_, i) => i)
  const text = formatInfohash(hash)
  expect(text).toBe('btmh:1220000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f')
  expect(parseInfohash(text)).toEqual(hash)
  expect(truncateInfohash(hash)).toEqual(hash.subarray(0, 20))
  for (const bad of [
    '',
    text.toUpperCase(),
    `${text}0`,
    text.slice(0, -1),
    `urn:${text}`,
    text.replace('1220', '1114')
  ]) {
    expect(tryParseInfohash(bad)).toBeUndefined()
    expect(errorOf(() => parseInfohash(bad))).toBe('E_METAINFO infohash')
  }
  expect(errorOf(() => formatInfohash(hash.subarray(1)))).toBe('E_METAINFO infohash')
})
