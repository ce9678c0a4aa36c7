import { createHash } from 'node:crypto'
import { seededRandom } from '@svc/testkit/fake-hub-faults'
import { expect, test } from 'vitest'
import { XetAnswerError } from '../../src/xet/answer-error.ts'
import { decodeLz4Frame } from '../../src/xet/lz4-frame.ts'
// Made by lz4 4.4.5 for Python
import frames from './lz4-frames.json' with { type: 'json' }

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

test.each(frames)('a frame of another implementation: $name', ({ frame, rawBytes, sha256: expected }) => {
  expect(sha256(decodeLz4Frame(Buffer.from(frame, 'hex'), rawBytes))).toBe(expected)
})

test.each(frames)('a frame has exactly the expected length and its end: $name', ({ frame, rawBytes }) => {
  const bytes = Buffer.from(frame, 'hex')
  for (const wrong of [rawBytes - 1, rawBytes + 1, 0])
    expect(() => decodeLz4Frame(bytes, wrong)).toThrow(XetAnswerError)
  for (let length = 0; length < bytes.length; length += 1 + (length >> 4))
    expect(() => decodeLz4Frame(bytes.subarray(0, length), rawBytes)).toThrow(XetAnswerError)
  expect(() => decodeLz4Frame(Buffer.concat([bytes, Buffer.of(0)]), rawBytes)).toThrow(XetAnswerError)
})

test('every input is decoded or refused', () => {
  const random = seededRandom(7)
  for (const { frame, rawBytes } of frames) {
    if (rawBytes > 10_000) continue
    for (let i = 0; i < 300; i++) {
      const bytes = Buffer.from(frame, 'hex')
      for (let flips = 0; flips < 3; flips++)
        bytes[Math.floor(random() * bytes.length)]! ^= 1 << Math.floor(random() * 8)
      try {
        expect(decodeLz4Frame(bytes, rawBytes)).toHaveLength(rawBytes)
      } catch (error) {
        expect(error).toBeInstanceOf(XetAnswerError)
      }
    }
  }
})

test('a bomb is refused before it is unpacked', () => {
  // a match of a mebibyte, in four thousand bytes
  const block = Buffer.concat([Buffer.of(0x1f, 0x61, 1, 0), Buffer.alloc(4_113, 255), Buffer.of(0)])
  const size = Buffer.alloc(4)
  size.writeUInt32LE(block.length)
  const bomb = Buffer.concat([Buffer.from('04224d18604082', 'hex'), size, block, Buffer.alloc(4)])
  expect(() => decodeLz4Frame(bomb, 64)).toThrow(XetAnswerError)
})
