import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type HashRequest, PieceTree } from '../src/hash-request.ts'
import { BLOCK_BYTES, HASH_BYTES, piecesRoot } from '../src/merkle.ts'
import { PieceLayerAssembler } from '../src/piece-layer-assembler.ts'
import { errorOf } from './error-of.ts'
import { seededBytes } from './seeded-bytes.ts'

function fileOf(pieces: number) {
  const shape = { sizeBytes: pieces * BLOCK_BYTES, pieceLengthBytes: BLOCK_BYTES }
  const layer = seededBytes(pieces * HASH_BYTES, pieces)
  const tree = new PieceTree(shape, layer)
  const root = piecesRoot(layer, shape.sizeBytes)
  return { shape, layer, root, answer: (request: HashRequest) => tree.answer(request) }
}

test('property: chunks in any order, with or without proofs, give the layer', () => {
  const pieceCounts = fc.oneof(
    fc.integer({ min: 2, max: 2_100 }),
    fc.constantFrom(2, 511, 512, 513, 1_024, 1_025, 2_049)
  )
  fc.assert(
    fc.property(pieceCounts, fc.boolean(), fc.boolean(), (pieces, proofs, reversed) => {
      const file = fileOf(pieces)
      const assembler = new PieceLayerAssembler(file.root, file.shape)
      if (!proofs) assembler.dropProofs()
      const wanted = [...assembler.missing()]
      if (reversed) wanted.reverse()
      for (const request of wanted) {
        expect(request.length).toBeGreaterThanOrEqual(2)
        expect(request.length).toBeLessThanOrEqual(512)
        expect(assembler.layer()).toBeUndefined()
        expect(['proven', proofs ? 'proven' : 'held']).toContain(assembler.accept(request, file.answer(request)))
      }
      expect(assembler.missing()).toEqual([])
      expect(assembler.layer()).toEqual(file.layer)
    }),
    { numRuns: 40 }
  )
})

test('a reply that is proven wrong is refused and requested again at once; the rest stays', () => {
  const file = fileOf(1_300)
  const assembler = new PieceLayerAssembler(file.root, file.shape)
  const [first, second] = assembler.missing()
  const lie = file.answer(second!)
  lie[5]! ^= 1
  expect(assembler.accept(first!, file.answer(first!))).toBe('proven')
  expect(assembler.accept(second!, lie)).toBe('refused')
  expect(assembler.missing()).toContainEqual(second)
  expect(assembler.missing()).not.toContainEqual(first)
})

test('without proofs, a wrong reply is a conflict: proven hashes stay, unproven ones are requested again', () => {
  const file = fileOf(1_300)
  const assembler = new PieceLayerAssembler(file.root, file.shape)
  const first = assembler.missing()[0]!
  expect(assembler.accept(first, file.answer(first))).toBe('proven')
  assembler.dropProofs()
  const [second, third] = assembler.missing()
  const lie = file.answer(third!)
  lie[5]! ^= 1
  expect(assembler.accept(second!, file.answer(second!))).toBe('held')
  expect(assembler.accept(third!, lie)).toBe('conflict')
  expect([assembler.missing(), assembler.layer()]).toEqual([[second, third], undefined])
  expect(assembler.accept(second!, file.answer(second!))).toBe('held')
  expect(assembler.accept(third!, file.answer(third!))).toBe('proven')
  expect(assembler.layer()).toEqual(file.layer)
})

test('replies to other requests, and files without a layer', () => {
  const file = fileOf(600)
  const assembler = new PieceLayerAssembler(file.root, file.shape)
  const foreign = { baseLayer: 0, index: 0, length: 2, proofLayers: 0 }
  expect(errorOf(() => assembler.accept(foreign, file.answer(foreign)))).toBe('E_MERKLE request')
  expect(errorOf(() => assembler.accept({ ...foreign, index: 4_096 }, new Uint8Array(64)))).toBe('E_MERKLE request')
  expect(errorOf(() => new PieceLayerAssembler(file.root, { sizeBytes: 5, pieceLengthBytes: BLOCK_BYTES }))).toBe(
    'E_MERKLE size'
  )
})
