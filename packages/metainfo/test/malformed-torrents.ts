import { type Encodable, encodeBencode, RawBencode } from '../src/bencode.ts'
import { leafLayer, pieceLayer, piecesRoot } from '../src/merkle.ts'
import { seededBytes } from './seeded-bytes.ts'

// v2 torrents with one defect each, after the cases that libtorrent's own test table names, built here from scratch.

const PIECE = 65_536
const MIB = 1_048_576

const data = seededBytes(MIB)
const leaves = leafLayer(data)
export const ROOT: Uint8Array = piecesRoot(leaves, MIB)
/** 16 hashes. */
export const LAYER: Uint8Array = pieceLayer(leaves, MIB, PIECE)

type Fields = Record<string, Encodable | undefined>
type Tree = Map<string | Uint8Array, Encodable>

const file = (fields: Fields): Encodable => new Map([['', fields as Encodable]])
const whole: Encodable = file({ length: MIB, 'pieces root': ROOT })
const tree = (...entries: [string | Uint8Array, Encodable][]): Tree => new Map(entries)
const info = (change: Fields = {}): Encodable => ({
  'file tree': tree(['test1MB', whole]),
  'meta version': 2,
  name: 'test1MB',
  'piece length': PIECE,
  ...change
})
const layers = (...entries: [Uint8Array, Encodable][]): Encodable => new Map(entries)
const torrent = (
  theInfo: Encodable,
  theLayers: Encodable | undefined = layers([ROOT, LAYER]),
  more: Fields = {}
): Uint8Array => encodeBencode({ info: theInfo, 'piece layers': theLayers, ...more })
const oneFile = (fields: Fields, theLayers?: Encodable): Uint8Array =>
  torrent(info({ 'file tree': tree(['test1MB', file(fields)]) }), theLayers)
const raw = (text: string): RawBencode => new RawBencode(Uint8Array.from(text, (character) => character.charCodeAt(0)))
function named(...path: (string | Uint8Array)[]): Uint8Array {
  const node = path.reduceRight<Encodable>((inner, segment) => tree([segment, inner]), whole)
  return torrent(info({ 'file tree': node, name: 'folder' }))
}

/** A hybrid of two files: `a` of 70,000 bytes, then padding, then `b` of 10 bytes. */
function hybrid(change: Fields = {}): Uint8Array {
  const a = data.subarray(0, 70_000)
  const b = data.subarray(0, 10)
  const aRoot = piecesRoot(leafLayer(a), a.length)
  return torrent(
    info({
      'file tree': tree(
        ['a', file({ length: a.length, 'pieces root': aRoot })],
        ['b', file({ length: b.length, 'pieces root': piecesRoot(leafLayer(b), b.length) })]
      ),
      files: [
        { length: a.length, path: ['a'] },
        { attr: 'p', length: 2 * PIECE - a.length, path: ['.pad', '61072'] },
        { length: b.length, path: ['b'] }
      ],
      name: 'folder',
      pieces: new Uint8Array(60),
      ...change
    }),
    layers([aRoot, pieceLayer(leafLayer(a), a.length, PIECE)])
  )
}

export interface TorrentCase {
  readonly name: string
  readonly bytes: Uint8Array
  /** `loads`, or code and reason of the refusal. */
  readonly expected: string
  /** What libtorrent does, where it agrees with us; undefined where it repairs or overlooks what we refuse. */
  readonly libtorrent: 'loads' | 'refuses' | undefined
}

const loads = (name: string, bytes: Uint8Array): TorrentCase => ({
  name,
  bytes,
  expected: 'loads',
  libtorrent: 'loads'
})
const refused = (name: string, expected: string, bytes: Uint8Array): TorrentCase => ({
  name,
  bytes,
  expected,
  libtorrent: 'refuses'
})
const stricter = (name: string, expected: string, bytes: Uint8Array): TorrentCase => ({
  name,
  bytes,
  expected,
  libtorrent: undefined
})

const deep = 200
const otherRoot = ROOT.map((byte) => byte ^ 1)

export const TORRENT_CASES: readonly TorrentCase[] = [
  loads('v2 only', torrent(info())),
  loads('several files', torrent(info({ name: 'folder', 'file tree': tree(['a', whole], ['b', tree(['c', whole])]) }))),
  loads('empty files', torrent(info({ name: 'folder', 'file tree': tree(['a', whole], ['e', file({ length: 0 })]) }))),
  loads('no piece layers, as from a magnet link', torrent(info(), undefined)),
  loads('incomplete piece layers', torrent(info(), layers())),
  loads('hybrid', hybrid()),
  loads(
    'hybrid with padding at the end',
    hybrid({
      files: [
        { length: 70_000, path: ['a'] },
        { attr: 'p', length: 2 * PIECE - 70_000, path: ['.pad', '61072'] },
        { length: 10, path: ['b'] },
        { attr: 'p', length: PIECE - 10, path: ['.pad', '65526'] }
      ]
    })
  ),
  loads('newlines after the root', Uint8Array.from([...torrent(info()), 0x0d, 0x0a])),

  refused(
    'hybrid: another length',
    'E_METAINFO v1-mismatch',
    hybrid({
      files: [
        { length: 70_001, path: ['a'] },
        { attr: 'p', length: 2 * PIECE - 70_001, path: ['.pad', '61071'] },
        { length: 10, path: ['b'] }
      ]
    })
  ),
  refused(
    'hybrid: another name',
    'E_METAINFO v1-mismatch',
    hybrid({
      files: [
        { length: 70_000, path: ['x'] },
        { attr: 'p', length: 2 * PIECE - 70_000, path: ['.pad', '61072'] },
        { length: 10, path: ['b'] }
      ]
    })
  ),
  refused(
    'hybrid: a file too few',
    'E_METAINFO v1-mismatch',
    hybrid({ files: [{ length: 70_000, path: ['a'] }], pieces: new Uint8Array(40) })
  ),
  refused(
    'hybrid: bad file alignment',
    'E_METAINFO v1-alignment',
    hybrid({
      files: [
        { length: 70_000, path: ['a'] },
        { length: 10, path: ['b'] }
      ],
      pieces: new Uint8Array(40)
    })
  ),
  stricter(
    'hybrid: padding of a whole piece',
    'E_METAINFO v1-alignment',
    hybrid({
      files: [
        { length: 70_000, path: ['a'] },
        { attr: 'p', length: 3 * PIECE - 70_000, path: ['.pad', '1'] },
        { length: 10, path: ['b'] }
      ],
      pieces: new Uint8Array(80)
    })
  ),
  refused('hybrid: v1 pieces of another number', 'E_METAINFO v1-pieces', hybrid({ pieces: new Uint8Array(40) })),
  refused('piece length not a power of two', 'E_METAINFO piece-length', torrent(info({ 'piece length': 65_537 }))),
  refused('piece length below 16 KiB', 'E_METAINFO piece-length', torrent(info({ 'piece length': 8_192 }))),
  refused('piece length negative', 'E_METAINFO piece-length', torrent(info({ 'piece length': -PIECE }))),
  refused('piece length zero', 'E_METAINFO piece-length', torrent(info({ 'piece length': 0 }))),
  refused('piece length missing', 'E_METAINFO piece-length', torrent(info({ 'piece length': undefined }))),
  refused('piece length beyond 512 MiB', 'E_METAINFO piece-length', torrent(info({ 'piece length': 2 ** 40 }))),
  refused(
    'file entry that is an integer',
    'E_METAINFO file-entry',
    torrent(info({ 'file tree': tree(['test1MB', 1]) }))
  ),
  refused(
    'file entry whose fields are an integer',
    'E_METAINFO file-entry',
    torrent(info({ 'file tree': tree(['test1MB', tree(['', 1])]) }))
  ),
  stricter(
    'file and folder at once',
    'E_METAINFO file-entry',
    torrent(
      info({
        'file tree': tree(['test1MB', tree(['', { length: MIB, 'pieces root': ROOT }], ['x', whole])])
      })
    )
  ),
  refused('empty filename', 'E_METAINFO path-segment', torrent(info({ 'file tree': whole }))),
  refused('no file tree', 'E_METAINFO file-tree', torrent(info({ 'file tree': undefined }))),
  stricter('empty file tree', 'E_METAINFO file-tree', torrent(info({ 'file tree': tree() }))),
  refused('meta version 3', 'E_METAINFO meta-version', torrent(info({ 'meta version': 3 }))),
  stricter(
    'v1 only',
    'E_METAINFO v1-only',
    torrent({ length: 10, name: 'x', 'piece length': PIECE, pieces: new Uint8Array(20) }, undefined)
  ),
  refused(
    'deep recursion',
    'E_BENCODE depth',
    torrent(
      info({
        'file tree': raw(`${'d1:a'.repeat(deep)}de${'e'.repeat(deep)}`)
      })
    )
  ),
  stricter('more than 32 folders', 'E_METAINFO path-depth', named(...Array.from({ length: 33 }, () => 'a'))),
  refused(
    'piece layer not a multiple of 32',
    'E_METAINFO piece-layer-length',
    torrent(info(), layers([ROOT, new Uint8Array(513)]))
  ),
  refused(
    'key of 33 bytes',
    'E_METAINFO piece-layer-key',
    torrent(info(), layers([new Uint8Array([...ROOT, 0]), LAYER]))
  ),
  refused('layer that is an integer', 'E_METAINFO piece-layers', torrent(info(), layers([ROOT, 1]))),
  refused('wrong layer size', 'E_METAINFO piece-layer-length', torrent(info(), layers([ROOT, LAYER.subarray(0, 64)]))),
  stricter(
    'layer whose root does not match',
    'E_METAINFO piece-layer-root',
    torrent(info(), layers([ROOT, LAYER.map((byte) => byte ^ 1)]))
  ),
  stricter(
    'unknown layer entry',
    'E_METAINFO piece-layer-unknown',
    torrent(info(), layers([ROOT, LAYER], [otherRoot, LAYER]))
  ),
  stricter('piece layers that are a list', 'E_METAINFO piece-layers', torrent(info(), [])),
  refused(
    'unordered files',
    'E_BENCODE key-order',
    torrent(info({ 'file tree': raw('d1:bd0:d6:lengthi0eee1:ad0:d6:lengthi0eeee') }))
  ),
  stricter(
    'a file twice',
    'E_BENCODE key-duplicate',
    torrent(info({ 'file tree': raw('d1:ad0:d6:lengthi0eee1:ad0:d6:lengthi0eeee') }))
  ),
  refused('overlong integer', 'E_BENCODE integer-range', torrent(info({ 'piece length': raw(`i${'6'.repeat(30)}e`) }))),
  stricter('leading zero', 'E_BENCODE integer-format', torrent(info({ 'piece length': raw('i065536e') }))),
  refused('missing root', 'E_METAINFO pieces-root', oneFile({ length: MIB })),
  refused('root of 31 bytes', 'E_METAINFO pieces-root', oneFile({ length: MIB, 'pieces root': ROOT.subarray(1) })),
  refused('zero root', 'E_METAINFO pieces-root', oneFile({ length: MIB, 'pieces root': new Uint8Array(32) })),
  refused(
    'zero root of a small file',
    'E_METAINFO pieces-root',
    oneFile({ length: 10, 'pieces root': new Uint8Array(32) }, layers())
  ),
  stricter('root of an empty file', 'E_METAINFO pieces-root', oneFile({ length: 0, 'pieces root': ROOT }, layers())),
  refused('missing length', 'E_METAINFO file-length', oneFile({ 'pieces root': ROOT })),
  refused('negative length', 'E_METAINFO file-length', oneFile({ length: -1, 'pieces root': ROOT })),
  refused('file too large', 'E_METAINFO file-length', oneFile({ length: 2 ** 48, 'pieces root': ROOT })),
  refused(
    'too many pieces',
    'E_METAINFO too-many-pieces',
    oneFile({ length: 2_000_001 * PIECE, 'pieces root': ROOT }, undefined)
  ),
  refused(
    'offset too large',
    'E_METAINFO total-length',
    torrent(
      info({
        name: 'folder',
        'piece length': 2 ** 29,
        'file tree': tree(['a', file({ length: 2 ** 48 - 1, 'pieces root': ROOT })], ['b', whole])
      }),
      undefined
    )
  ),
  refused('pad file in the tree', 'E_METAINFO pad-file', oneFile({ attr: 'p', length: MIB, 'pieces root': ROOT })),
  stricter(
    'symbolic link',
    'E_METAINFO symlink',
    oneFile({ attr: 'l', length: 0, 'symlink path': ['etc', 'passwd'] }, layers())
  ),
  stricter(
    'one root, two lengths',
    'E_METAINFO pieces-root',
    torrent(
      info({
        name: 'folder',
        'file tree': tree(['a', whole], ['b', file({ length: MIB + 1, 'pieces root': ROOT })])
      }),
      undefined
    )
  ),
  stricter('name with //', 'E_METAINFO path-segment', named('a//b')),
  stricter('name with a slash', 'E_METAINFO path-segment', named('../b')),
  stricter('name ..', 'E_METAINFO path-segment', named('..', 'b')),
  stricter('name .', 'E_METAINFO path-segment', named('.')),
  stricter('name with a backslash', 'E_METAINFO path-segment', named('a\\b')),
  stricter('name with a NUL', 'E_METAINFO path-segment', named('a\0b')),
  stricter('name that is no UTF-8', 'E_METAINFO path-segment', named(new Uint8Array([0x61, 0xff]))),
  stricter('name of 256 bytes', 'E_METAINFO path-segment', named('a'.repeat(256))),
  stricter(
    'names equal after NFC',
    'E_METAINFO path-duplicate',
    torrent(
      info({
        name: 'folder',
        'file tree': tree(['e\u0301', whole], ['\u00e9', whole])
      })
    )
  ),
  stricter('torrent name ..', 'E_METAINFO name', torrent(info({ name: '..' }))),
  stricter('torrent name with //', 'E_METAINFO name', torrent(info({ name: 'a//b' }))),
  stricter('torrent name with a backslash', 'E_METAINFO name', torrent(info({ name: 'a\\b' }))),
  stricter('torrent name that is no UTF-8', 'E_METAINFO name', torrent(info({ name: new Uint8Array([0xff]) }))),
  refused('torrent name missing', 'E_METAINFO name', torrent(info({ name: undefined }))),
  refused('no info', 'E_METAINFO info-missing', encodeBencode({ announce: 'http://127.0.0.1/' })),
  refused('info that is a list', 'E_METAINFO not-a-dictionary', torrent([])),
  refused('a list', 'E_METAINFO not-a-dictionary', encodeBencode([])),
  stricter('other bytes after the root', 'E_BENCODE trailing', Uint8Array.from([...torrent(info()), 0x20])),
  stricter('private that is a string', 'E_METAINFO private', torrent(info({ private: '1' }))),
  stricter('announce that is an integer', 'E_METAINFO hints', torrent(info(), undefined, { announce: 1 })),
  stricter('announce-list that is a string', 'E_METAINFO hints', torrent(info(), undefined, { 'announce-list': 'x' })),
  stricter(
    '1,001 webseeds',
    'E_METAINFO hints',
    torrent(info(), undefined, {
      'url-list': Array.from({ length: 1_001 }, (_, i) => `http://127.0.0.1/${i}`)
    })
  )
]
