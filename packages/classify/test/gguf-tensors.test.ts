import { makeGguf, tinyTensors } from '@svc/testkit/models'
import { expect, test } from 'vitest'
import { ggufDefect, readGgufHead } from '../src/index.ts'

type Change = readonly [tensor: number, field: 'dimension' | 'type' | 'offset', value: bigint]

const TENSORS = tinyTensors('Q8_0')

/** A GGUF with fields of its list of tensors overwritten. */
function changed(...changes: readonly Change[]): Buffer {
  const bytes = makeGguf()
  for (const [at, field, value] of changes) {
    const { name, shape } = TENSORS[at]!
    const dimensions = bytes.indexOf(name) + name.length + 4
    const type = dimensions + 8 * shape.length
    if (field === 'dimension') bytes.writeBigUInt64LE(value, dimensions)
    else if (field === 'type') bytes.writeUInt32LE(Number(value), type)
    else bytes.writeBigUInt64LE(value, type + 4)
  }
  return bytes
}

const LAST = TENSORS.length - 1
const U64 = 2n ** 64n

test.each<readonly [string, readonly Change[], RegExp]>([
  ['an offset beyond the end', [[LAST, 'offset', 2n ** 40n]], /take \d+ bytes, and the file has \d+ for them/],
  ['an offset that wraps around 64 bits', [[LAST, 'offset', U64 - 32n]], /take \d+ bytes/],
  ['a length that wraps around 64 bits', [[LAST, 'dimension', U64 / 4n]], /take \d+ bytes/],
  [
    'a product that wraps around 64 bits',
    [
      [0, 'dimension', U64 / 2n],
      [0, 'dimension', U64 - 256n]
    ],
    /take [\d.]+e\+\d+ bytes/
  ],
  ['two tensors in one place', [[1, 'offset', 0n]], /overlap at byte 0/],
  ['a tensor that begins in another', [[2, 'offset', 139_296n]], /overlap at byte 139296/],
  ['an offset that is not aligned', [[1, 'offset', 139_265n]], /tensor 2 begins at 139265, not at a multiple of 32/]
])('%s is told, and nothing there is read', async (_, changes, problem) => {
  const bytes = changed(...changes)
  expect(ggufDefect(bytes, bytes.length)).toMatch(problem)
  const asked: number[] = []
  const summary = await readGgufHead(async (offset, length) => {
    asked.push(offset + length)
    return bytes.subarray(offset, offset + length)
  }, bytes.length)
  expect(summary).toMatchObject({ format: 'gguf', defect: expect.stringMatching(problem) })
  expect(Math.max(...asked)).toBeLessThanOrEqual(bytes.length)
})

test('a file that lacks one byte of its last tensor is told; the padding after it may be absent', () => {
  const bytes = makeGguf({ tensors: [{ name: 'a', shape: [5], type: 'F32' }] })
  const end = bytes.length - 12
  expect(ggufDefect(bytes, bytes.length)).toBeUndefined()
  expect(ggufDefect(bytes.subarray(0, end), end)).toBeUndefined()
  expect(ggufDefect(bytes.subarray(0, end - 1), end - 1)).toContain('its tensors take 20 bytes, and the file has 19')
})

test('tensors of an unknown type count only as where they begin', () => {
  const bytes = changed([LAST, 'type', 99n], [LAST, 'dimension', 2n ** 50n])
  expect(ggufDefect(bytes, bytes.length)).toBeUndefined()
  expect(ggufDefect(changed([LAST, 'type', 99n], [LAST, 'offset', 2n ** 50n]), bytes.length)).toMatch(/take \d+ bytes/)
})

test('very many keys are refused at once', () => {
  const bytes = makeGguf()
  bytes.writeBigUInt64LE(2n ** 40n, 16)
  expect(ggufDefect(bytes, 2 ** 50)).toBe('it lists 1099511627776 keys')
})

test.each([
  ['alignment', { 'general.alignment': 0 }, /aligned to 0 bytes/],
  ['alignment', { 'general.alignment': 2 ** 31 }, /aligned to 2147483648 bytes/]
])('an impossible %s is told', (_, metadata, problem) => {
  const bytes = makeGguf({ metadata })
  expect(ggufDefect(bytes, bytes.length)).toMatch(problem)
})

test('a list of tensors behind a large vocabulary is found; of an endless one 32 MiB are read', async () => {
  const metadata = { 'tokenizer.ggml.tokens': Array.from({ length: 100_000 }, (_, i) => `token ${i} of very many`) }
  const bytes = makeGguf({ metadata })
  const sizeBytes = bytes.length - 1_000_000
  const readAt = async (offset: number, length: number): Promise<Uint8Array> =>
    bytes.subarray(offset, Math.min(sizeBytes, offset + length))
  expect(ggufDefect(bytes.subarray(0, 2 ** 20), sizeBytes)).toBeUndefined()
  expect(await readGgufHead(readAt, sizeBytes)).toMatchObject({ defect: expect.stringContaining('its tensors take') })
  // an array of very many empty texts
  const endless = Buffer.alloc(40 << 20)
  makeGguf({ metadata: { 'tokenizer.ggml.tokens': [] } }).copy(endless, 0, 0, bytes.indexOf('tokens') + 14)
  endless.writeBigUInt64LE(2n ** 60n, bytes.indexOf('tokens') + 14)
  let most = 0
  const summary = await readGgufHead(async (offset, length) => {
    most = Math.max(most, offset + length)
    return endless.subarray(offset, offset + length)
  }, endless.length)
  expect(most).toBe(32 << 20)
  expect(summary).not.toHaveProperty('defect')
})
