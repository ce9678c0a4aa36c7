import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  defectOfHashRequest,
  type HashRequest,
  leavesForRequest,
  nodeOfReply,
  PieceTree,
  replyLength,
  treeHeight,
  verifyReply
} from '../src/hash-request.ts'
import { BLOCK_BYTES, HASH_BYTES, leafLayer, padHash, pieceLayer, pieceLevel, piecesRoot } from '../src/merkle.ts'
import { errorOf } from './error-of.ts'
import { seededBytes } from './seeded-bytes.ts'

// Trees are built over leaves alone: their content does not matter, only their hashes.
function fileOf(blocks: number, blocksPerPiece: number) {
  const shape = { sizeBytes: blocks * BLOCK_BYTES, pieceLengthBytes: blocksPerPiece * BLOCK_BYTES }
  const leaves = seededBytes(blocks * HASH_BYTES, blocks)
  const layer = blocks > blocksPerPiece ? pieceLayer(leaves, shape.sizeBytes, shape.pieceLengthBytes) : undefined
  const tree = new PieceTree(shape, layer)
  const answer = (request: HashRequest): Uint8Array => {
    const window = leavesForRequest(request, shape)
    return tree.answer(request, window && leaves.subarray(window.start * HASH_BYTES, window.end * HASH_BYTES))
  }
  return { shape, leaves, layer, tree, answer, root: piecesRoot(leaves, shape.sizeBytes) }
}

const requests = fc
  .record({ blocks: fc.integer({ min: 2, max: 300 }), perPiece: fc.constantFrom(1, 2, 4, 16, 512) })
  .chain(({ blocks, perPiece }) => {
    const height = treeHeight(blocks * BLOCK_BYTES)
    return fc.record({
      blocks: fc.constant(blocks),
      perPiece: fc.constant(perPiece),
      base: fc.nat(height - 1),
      levels: fc.nat(height),
      position: fc.nat(blocks),
      proof: fc.nat(height)
    })
  })
  .map(({ blocks, perPiece, base, levels, position, proof }) => {
    const height = treeHeight(blocks * BLOCK_BYTES)
    const length = 2 ** Math.min(levels, height - base)
    const real = Math.ceil(blocks / 2 ** base)
    const index = Math.floor((position % real) / length) * length
    return {
      file: fileOf(blocks, perPiece),
      request: { baseLayer: base, index, length, proofLayers: Math.min(proof, height - base - 1) }
    }
  })

describe('property: any valid request', () => {
  test('the reply leads to the root when its proof does, and a flipped bit never does', () => {
    fc.assert(
      fc.property(requests, fc.nat(), ({ file, request }, flip) => {
        expect(defectOfHashRequest(request, file.shape)).toBeUndefined()
        const reply = file.answer(request)
        expect(reply).toHaveLength(replyLength(request))
        const full = { ...request, proofLayers: treeHeight(file.shape.sizeBytes) - request.baseLayer - 1 }
        // the root needs no proof: a single hash right below it has no room for one that names its sibling.
        if (request.length === 1 && full.proofLayers === 0) return
        const proof = file.answer(full)
        expect(verifyReply(full, file.shape, proof, file.root)).toBe(true)
        expect(reply).toEqual(proof.subarray(0, reply.length))
        const bad = proof.slice()
        bad[(flip >>> 3) % bad.length]! ^= 1 << (flip & 7)
        expect(verifyReply(full, file.shape, bad, file.root)).toBe(false)
      }),
      { numRuns: 300 }
    )
  })

  test('a partial proof leads to the node that the full tree has there', () => {
    fc.assert(
      fc.property(requests, ({ file, request }) => {
        const node = nodeOfReply(request, file.shape, file.answer(request))
        const blocks = file.leaves.length / HASH_BYTES
        if (node.index * 2 ** node.level >= blocks) return
        const under = file.leaves.subarray(
          node.index * 2 ** node.level * HASH_BYTES,
          (node.index + 1) * 2 ** node.level * HASH_BYTES
        )
        expect(node.hash).toEqual(
          pieceLayer(under, (under.length / HASH_BYTES) * BLOCK_BYTES, 2 ** node.level * BLOCK_BYTES)
        )
      }),
      { numRuns: 200 }
    )
  })
})

test('512n+1 pieces: a request for one hash is answered with an uncle of its own layer', () => {
  const file = fileOf(513, 1)
  const request = { baseLayer: 0, index: 512, length: 1, proofLayers: 9 }
  const reply = file.answer(request)
  expect(reply).toHaveLength(11 * HASH_BYTES)
  expect(reply.subarray(HASH_BYTES, 2 * HASH_BYTES)).toEqual(padHash(0))
  expect(verifyReply(request, file.shape, reply, file.root)).toBe(true)
})

test('a short request at the end of a layer', () => {
  const file = fileOf(21, 1)
  const request = { baseLayer: 0, index: 16, length: 5, proofLayers: 4 }
  const reply = file.answer(request)
  expect(reply).toHaveLength((5 + 2) * HASH_BYTES)
  expect(verifyReply(request, file.shape, reply, file.root)).toBe(true)
})

test("positions past the end are the layer's padding", () => {
  const file = fileOf(33, 4)
  const reply = file.answer({ baseLayer: 2, index: 8, length: 8, proofLayers: 0 })
  expect(reply.subarray(HASH_BYTES, 2 * HASH_BYTES)).toEqual(padHash(2))
  expect(pieceLevel(file.shape.pieceLengthBytes)).toBe(2)
})

test('leaves are requested by whole pieces, and never if the piece layer suffices', () => {
  const { shape } = fileOf(33, 4)
  expect(leavesForRequest({ baseLayer: 0, index: 6, length: 2, proofLayers: 0 }, shape)).toEqual({ start: 4, end: 8 })
  expect(leavesForRequest({ baseLayer: 1, index: 16, length: 2, proofLayers: 0 }, shape)).toEqual({
    start: 32,
    end: 33
  })
  expect(leavesForRequest({ baseLayer: 2, index: 0, length: 16, proofLayers: 0 }, shape)).toBeUndefined()
})

describe('requests that are rejected', () => {
  const { shape, tree } = fileOf(1_000, 4)
  test.each<[string, Partial<HashRequest>]>([
    ['no such layer', { baseLayer: 11 }],
    ['the root', { baseLayer: 10, length: 1 }],
    ['no hashes', { length: 0 }],
    ['too many hashes', { length: 16_384 }],
    ['a length that is not a power of two inside the layer', { length: 3 }],
    ['an index between multiples', { index: 1 }],
    ['an index past the end', { index: 1_024 }],
    ['a range beyond the layer', { baseLayer: 8, index: 0, length: 8 }],
    ['a proof beyond the root', { proofLayers: 10 }],
    ['negative', { index: -2 }],
    ['a fraction', { index: 0.5 }]
  ])('%s', (_name, change) => {
    const request = { baseLayer: 0, index: 0, length: 2, proofLayers: 0, ...change }
    expect(defectOfHashRequest(request, shape)).toBeTypeOf('string')
    expect(errorOf(() => tree.answer(request, new Uint8Array(0)))).toBe('E_MERKLE request')
    expect(errorOf(() => nodeOfReply(request, shape, new Uint8Array(0)))).toBe('E_MERKLE request')
  })

  test('work is bounded: a range over too many blocks below the pieces', () => {
    const large = { sizeBytes: 2 ** 40, pieceLengthBytes: 2 ** 24 }
    expect(defectOfHashRequest({ baseLayer: 5, index: 0, length: 8_192, proofLayers: 0 }, large)).toBeTypeOf('string')
    expect(defectOfHashRequest({ baseLayer: 0, index: 0, length: 512, proofLayers: 0 }, large)).toBeUndefined()
    expect(defectOfHashRequest({ baseLayer: 10, index: 0, length: 8_192, proofLayers: 3 }, large)).toBeUndefined()
  })

  test('a reply of another length, layers and leaves of another file', () => {
    const request = { baseLayer: 0, index: 0, length: 2, proofLayers: 9 }
    expect(errorOf(() => nodeOfReply(request, shape, new Uint8Array(32)))).toBe('E_MERKLE reply-length')
    expect(errorOf(() => tree.answer(request))).toBe('E_MERKLE layer-length')
    expect(errorOf(() => new PieceTree(shape, new Uint8Array(32)))).toBe('E_MERKLE layer-length')
    expect(errorOf(() => new PieceTree({ ...shape, sizeBytes: 0 }, undefined))).toBe('E_MERKLE size')
    expect(defectOfHashRequest(request, { ...shape, sizeBytes: 0 })).toBeTypeOf('string')
  })
})

test('a file of one block has its leaf and nothing else', () => {
  const file = fileOf(1, 4)
  const request = { baseLayer: 0, index: 0, length: 1, proofLayers: 0 }
  expect(file.answer(request)).toEqual(file.leaves)
  expect(leafLayer(new Uint8Array(1))).toHaveLength(HASH_BYTES)
})
