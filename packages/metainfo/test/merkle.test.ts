import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  BLOCK_BYTES,
  blockCount,
  foldLayer,
  HASH_BYTES,
  isPieceLength,
  leafLayer,
  padHash,
  pieceHash,
  pieceLayer,
  piecesRoot,
  rootOfPieceLayer,
  verifyPieceLayer
} from '../src/merkle.ts'
import { sha256 } from '../src/sha256.ts'
import { errorOf } from './error-of.ts'
import { seededBytes } from './seeded-bytes.ts'

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')
const hashOf = (...parts: Uint8Array[]): Buffer => createHash('sha256').update(Buffer.concat(parts)).digest()

/** BEP 52 read literally and slowly: all leaves padded to a power of two, then paired. */
function slowRoot(data: Uint8Array): Buffer {
  let layer: Uint8Array[] = []
  for (let at = 0; at < data.length; at += BLOCK_BYTES) layer.push(hashOf(data.subarray(at, at + BLOCK_BYTES)))
  while (!Number.isInteger(Math.log2(layer.length))) layer.push(Buffer.alloc(32))
  while (layer.length > 1) layer = layer.flatMap((left, i) => (i % 2 === 0 ? [hashOf(left, layer[i + 1]!)] : []))
  return Buffer.from(layer[0]!)
}

test('pads: zero bytes at the leaves, pairs of pads above', () => {
  expect(hex(padHash(0))).toBe('00'.repeat(32))
  expect(hex(padHash(2))).toBe(hex(hashOf(hashOf(Buffer.alloc(64)), hashOf(Buffer.alloc(64)))))
  expect(hex(sha256(new Uint8Array(0)))).toBe('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855')
})

test.each([1, 16_383, 16_384, 16_385, 32_768, 32_769, 49_152, 65_537, 16_384 * 17 + 3])(
  'the root of %i bytes',
  (size) => {
    const data = seededBytes(size)
    expect(hex(piecesRoot(leafLayer(data), size))).toBe(hex(slowRoot(data)))
  }
)

test('an empty file has leaves of no bytes and no root', () => {
  expect(leafLayer(new Uint8Array(0))).toHaveLength(0)
  expect(errorOf(() => piecesRoot(new Uint8Array(0), 0))).toBe('E_MERKLE size')
})

test('impossible lengths are refused', () => {
  const leaves = leafLayer(seededBytes(40_000))
  expect(errorOf(() => piecesRoot(leaves, 50_000))).toBe('E_MERKLE layer-length')
  expect(errorOf(() => piecesRoot(leaves.subarray(1), 40_000))).toBe('E_MERKLE layer-length')
  expect(errorOf(() => piecesRoot(leaves, -1))).toBe('E_MERKLE size')
  expect(errorOf(() => piecesRoot(leaves, 1.5))).toBe('E_MERKLE size')
  expect(errorOf(() => pieceLayer(leaves, 40_000, 20_000))).toBe('E_MERKLE piece-length')
  expect(errorOf(() => foldLayer(leaves, 0, 1))).toBe('E_MERKLE layer-length')
  expect(errorOf(() => rootOfPieceLayer(leaves, 16_384, 16_384))).toBe('E_MERKLE size')
  expect([16_384, 2 ** 24].map(isPieceLength)).toEqual([true, true])
  expect([0, -16_384, 8_192, 16_385, 24_576, Number.NaN, 2 ** 14 + 0.5].map(isPieceLength)).not.toContain(true)
})

describe('property: files of any size at any piece length', () => {
  const shapes = fc.record({
    sizeBytes: fc.integer({ min: 1, max: 40 * BLOCK_BYTES }),
    pieceLengthBytes: fc.constantFrom(1, 2, 4, 8, 64).map((blocks) => blocks * BLOCK_BYTES)
  })

  test('the piece layer folds to the root, each piece to its entry; a flipped bit is noticed', () => {
    fc.assert(
      fc.property(shapes, fc.nat(), ({ sizeBytes, pieceLengthBytes }, flip) => {
        const data = seededBytes(sizeBytes, sizeBytes)
        const leaves = leafLayer(data)
        const root = piecesRoot(leaves, sizeBytes)
        const layer = pieceLayer(leaves, sizeBytes, pieceLengthBytes)
        const perPiece = (pieceLengthBytes / BLOCK_BYTES) * HASH_BYTES
        for (let piece = 0; piece * perPiece < leaves.length; piece++) {
          const own = pieceHash(leaves.subarray(piece * perPiece, (piece + 1) * perPiece), sizeBytes, pieceLengthBytes)
          const expected =
            sizeBytes > pieceLengthBytes ? layer.subarray(piece * HASH_BYTES, (piece + 1) * HASH_BYTES) : root
          expect(hex(own)).toBe(hex(expected))
        }
        if (sizeBytes <= pieceLengthBytes) {
          expect(verifyPieceLayer(layer, root, sizeBytes, pieceLengthBytes)).toBe(false)
          return
        }
        expect(verifyPieceLayer(layer, root, sizeBytes, pieceLengthBytes)).toBe(true)
        const bad = layer.slice()
        bad[(flip >>> 3) % bad.length]! ^= 1 << (flip & 7)
        expect(verifyPieceLayer(bad, root, sizeBytes, pieceLengthBytes)).toBe(false)
        expect(verifyPieceLayer(layer.subarray(32), root, sizeBytes, pieceLengthBytes)).toBe(false)
      }),
      { numRuns: 40 }
    )
  })

  test('leaves of equal data are equal, wherever they are', () => {
    const twice = leafLayer(new Uint8Array(2 * BLOCK_BYTES))
    expect(hex(twice.subarray(0, 32))).toBe(hex(twice.subarray(32)))
    expect(blockCount(2 * BLOCK_BYTES)).toBe(2)
  })
})
