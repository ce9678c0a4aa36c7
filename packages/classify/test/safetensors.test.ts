import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type HeaderProblem, type ReadAt, readSafetensorsHeader, type SafetensorsSummary } from '../src/index.ts'
import { readVectors } from './vectors.ts'

interface Case {
  readonly title: string
  readonly header: string
  readonly headerBytes?: number | string
  readonly dataBytes: number
  readonly expect: 'unreadable' | { tensorCount: number; bytesByDtype: Record<string, number> | [string, number][] }
}

function fileOf({ header, headerBytes, dataBytes }: Pick<Case, 'header' | 'headerBytes' | 'dataBytes'>): Uint8Array {
  const text = new TextEncoder().encode(header)
  const file = new Uint8Array(8 + text.length + dataBytes)
  new DataView(file.buffer).setBigUint64(0, BigInt(headerBytes ?? text.length), true)
  file.set(text, 8)
  return file
}

const readerOf =
  (file: Uint8Array, most = Number.POSITIVE_INFINITY): ReadAt =>
  async (offset, length) =>
    file.slice(offset, offset + Math.min(length, most))
const read = (file: Uint8Array): Promise<SafetensorsSummary | HeaderProblem> =>
  readSafetensorsHeader(readerOf(file), file.length)

test.each(readVectors<{ safetensors: Case[] }>('headers').safetensors)('$title', async (row) => {
  const summary = await read(fileOf(row))
  if (row.expect === 'unreadable') return expect(summary.format).toBe('unreadable')
  const { tensorCount, bytesByDtype } = row.expect
  const dtypes = new Map(Array.isArray(bytesByDtype) ? bytesByDtype : Object.entries(bytesByDtype))
  expect(summary).toEqual({
    format: 'safetensors',
    headerBytes: new TextEncoder().encode(row.header).length,
    tensorCount,
    bytesByDtype: dtypes
  })
})

const anyTensors = fc.array(
  fc.tuple(
    fc.constantFrom(['BF16', 2], ['F32', 4], ['U8', 1], ['F64', 8], ['X1', 3]) as fc.Arbitrary<[string, number]>,
    fc.nat(20),
    fc.string()
  ),
  { maxLength: 30 }
)

/** A file of these tensors, listed in the given order, and the sums that it must give. */
function make(
  tensors: readonly [[string, number], number, string][],
  order: readonly number[]
): { file: Uint8Array; sums: Map<string, number>; dataBytes: number } {
  let offset = 0
  const sums = new Map<string, number>()
  const listed = tensors.map(([[dtype, bytes], count, name], i) => {
    const start = offset
    offset += bytes * count
    sums.set(dtype, (sums.get(dtype) ?? 0) + bytes * count)
    return [`${name}#${i}`, { dtype, shape: [count], data_offsets: [start, offset] }] as const
  })
  const header = JSON.stringify(Object.fromEntries(order.map((i) => listed[i]!)))
  return { file: fileOf({ header, dataBytes: offset }), sums, dataBytes: offset }
}

describe('properties', () => {
  test('the bytes per dtype are those of the tensors, in any order and any chunking', async () => {
    await fc.assert(
      fc.asyncProperty(
        anyTensors.chain((tensors) =>
          fc.tuple(fc.constant(tensors), fc.shuffledSubarray([...tensors.keys()], { minLength: tensors.length }))
        ),
        fc.integer({ min: 1, max: 100 }),
        async ([tensors, order], most) => {
          const { file, sums } = make(tensors, order)
          // the length itself is read whole: a reader gives fewer bytes only at the end of the file.
          const reader: ReadAt = (offset, length) => readerOf(file, offset === 0 ? length : most)(offset, length)
          expect(await readSafetensorsHeader(reader, file.length)).toMatchObject({
            format: 'safetensors',
            tensorCount: tensors.length,
            bytesByDtype: sums
          })
        }
      )
    )
  })

  test('one byte more or less of data, or one tensor less, is noticed', async () => {
    await fc.assert(
      fc.asyncProperty(anyTensors, async (tensors) => {
        const { file, dataBytes } = make(tensors, [...tensors.keys()])
        expect((await read(Uint8Array.of(...file, 0))).format).toBe('unreadable')
        if (dataBytes > 0) expect((await read(file.subarray(0, -1))).format).toBe('unreadable')
        const largest = tensors.findIndex(([, count]) => count > 0)
        if (largest >= 0) {
          const fewer = make(
            tensors,
            [...tensors.keys()].filter((i) => i !== largest)
          )
          expect((await read(fewer.file)).format).toBe('unreadable')
        }
      })
    )
  })

  test('any bytes are read without an error', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 60 }), async (bytes) => {
        expect((await read(bytes)).format).toBe('unreadable')
        expect((await read(fileOf({ header: String.fromCharCode(...bytes), dataBytes: 0 }))).format).toBe('unreadable')
      })
    )
  })
})

test('only the header is read', async () => {
  const file = fileOf({
    header: JSON.stringify({ a: { dtype: 'U8', shape: [5000], data_offsets: [0, 5000] } }),
    dataBytes: 5000
  })
  let furthest = 0
  await readSafetensorsHeader(async (offset, length) => {
    furthest = Math.max(furthest, offset + length)
    return file.slice(offset, offset + length)
  }, file.length)
  expect(furthest).toBeLessThanOrEqual(512)
})

test('an unreadable file is described by its first bytes', async () => {
  expect(await read(new TextEncoder().encode('version https://git-lfs.github.com/spec/v1\noid sha256:'))).toMatchObject(
    { looksLike: expect.stringMatching(/LFS/) }
  )
  const whole = fileOf({
    header: JSON.stringify({ a: { dtype: 'U8', shape: [50], data_offsets: [0, 50] } }),
    dataBytes: 50
  })
  expect(await read(whole.subarray(0, 60))).toMatchObject({ looksLike: expect.stringMatching(/truncated/) })
  expect(await read(new Uint8Array(0))).toMatchObject({ looksLike: expect.stringMatching(/empty/) })
})

test('an error of the reader is passed on', async () => {
  const broken = new Error('EIO')
  await expect(readSafetensorsHeader(() => Promise.reject(broken), 100)).rejects.toBe(broken)
})

test('a file that shrinks during the read is unreadable', async () => {
  const file = fileOf({ header: ' '.repeat(1000), dataBytes: 0 })
  expect(await readSafetensorsHeader(readerOf(file.subarray(0, 8)), file.length)).toMatchObject({
    format: 'unreadable'
  })
})
