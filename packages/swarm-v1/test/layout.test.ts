import { createHash } from 'node:crypto'
import { type Encodable, encodeBencode } from '@svc/metainfo'
import { parseV1Torrent } from '@svc/swarm-v1'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { slicesOf } from '../src/pieces.ts'

const MiB = 1 << 20
const hashes = (count: number) => new Uint8Array(20 * count)
function parse(info: Encodable) {
  const bytes = encodeBencode(info)
  return parseV1Torrent(bytes, createHash('sha1').update(bytes).digest('hex'))
}
const info = (more: Record<string, Encodable>) => ({
  name: 'm',
  'piece length': MiB,
  pieces: hashes(1),
  length: 5,
  ...more
})
const files = (...list: readonly (readonly [path: Encodable, length: Encodable, attr?: string])[]) => ({
  name: 'm',
  'piece length': MiB,
  pieces: hashes(1),
  files: list.map(([path, length, attr]) => ({ path, length, attr }))
})

test('one file and many', () => {
  expect(parse(info({}))).toMatchObject({ name: 'm', sizeBytes: 5, pieceCount: 1, files: [{ path: 'm', offset: 0 }] })
  expect(parse(files([['a'], 3], [['.pad', '7'], 7, 'p'], [['d', 'b'], 1])).files).toEqual([
    { path: 'a', sizeBytes: 3, offset: 0, pad: false },
    { path: '.pad/7', sizeBytes: 7, offset: 3, pad: true },
    { path: 'd/b', sizeBytes: 1, offset: 10, pad: false }
  ])
})

describe('refused', () => {
  const cases: Record<string, Encodable> = {
    'a list': [1],
    'no pieces': { name: 'm', 'piece length': MiB, length: 5 },
    'a piece too many': info({ pieces: hashes(2) }),
    'a piece too few': info({ length: MiB + 1 }),
    'a torn hash': info({ pieces: new Uint8Array(19) }),
    'no byte': info({ length: 0, pieces: hashes(0) }),
    'a negative length': info({ length: -1 }),
    'a length beyond 2^53': info({ length: 2n ** 60n }),
    'a tiny piece length': info({ 'piece length': 1 }),
    'a huge piece length': info({ 'piece length': 2 ** 40 }),
    'a name with a slash': info({ name: 'a/b' }),
    'the name ..': info({ name: '..' }),
    'a name with NUL': info({ name: 'a\0b' }),
    'a name that is no UTF-8': info({ name: new Uint8Array([0xff]) }),
    'an empty path': files([[], 1]),
    'a path that climbs': files([['..', 'x'], 1]),
    'a backslash': files([['a\\b'], 1]),
    'an empty segment': files([['a', ''], 1]),
    'the same path twice': files([['a'], 1], [['a'], 1]),
    'the same path after NFC': files([['\u00e9'], 1], [['e\u0301'], 1]),
    'a file that is a folder': files([['a'], 1], [['a', 'b'], 1]),
    'a symbolic link': files([['a'], 1, 'l']),
    'a path 33 deep': files([Array.from({ length: 33 }, () => 'a'), 1])
  }
  for (const [name, value] of Object.entries(cases)) {
    test(name, () => {
      expect(() => parse(value)).toThrowError(expect.objectContaining({ code: 'E_SWARM_V1', reason: 'metadata' }))
    })
  }
  test('another infohash', () => {
    const bytes = encodeBencode(info({}))
    expect(() => parseV1Torrent(bytes, '0'.repeat(40))).toThrowError(expect.objectContaining({ reason: 'metadata' }))
  })
  test('any bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        expect(() => parseV1Torrent(bytes, createHash('sha1').update(bytes).digest('hex'))).toThrowError(
          expect.objectContaining({ code: 'E_SWARM_V1' })
        )
      })
    )
  })
})

test('slices cover exactly the requested range', () => {
  fc.assert(
    fc.property(
      fc.array(fc.record({ length: fc.integer({ min: 0, max: 50 }), pad: fc.boolean() }), {
        minLength: 1,
        maxLength: 12
      }),
      fc.nat(400),
      fc.nat(200),
      (list, offset, length) => {
        let at = 0
        const layoutFiles = list.map((file, i) => {
          const entry = { path: `f${i}`, sizeBytes: file.length, offset: at, pad: file.pad }
          at += file.length
          return entry
        })
        const layout = {
          infohash: '',
          name: '',
          pieceLength: 1,
          pieceCount: 1,
          sizeBytes: at,
          files: layoutFiles,
          isPrivate: false,
          info: new Uint8Array()
        }
        const covered = new Map<number, string>()
        for (const slice of slicesOf(layout, offset, length)) {
          for (let i = slice.start; i < slice.end; i++)
            covered.set(i, `${slice.file}:${slice.offset + i - slice.start}`)
        }
        const expected = new Map<number, string>()
        for (let i = 0; i < length; i++) {
          const index = layoutFiles.findIndex(
            (file) => file.offset <= offset + i && offset + i < file.offset + file.sizeBytes
          )
          if (index >= 0 && !layoutFiles[index]!.pad)
            expected.set(i, `${index}:${offset + i - layoutFiles[index]!.offset}`)
        }
        expect(covered).toEqual(expected)
      }
    )
  )
})
