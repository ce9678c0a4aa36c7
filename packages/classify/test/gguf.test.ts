import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseGgufHead } from '../src/gguf.ts'
import { readGgufHead } from '../src/index.ts'
import { looksLike } from '../src/looks.ts'
import { readVectors } from './vectors.ts'

interface Case {
  readonly title: string
  readonly hex: string
  readonly sizeBytes: number
  readonly expect: 'unreadable' | object
}
const { gguf, looks } = readVectors<{ gguf: Case[]; looks: (Omit<Case, 'expect'> & { looksLike: string | null })[] }>(
  'headers'
)
const bytesOf = (hex: string): Uint8Array => new Uint8Array(Buffer.from(hex, 'hex'))

test.each(gguf)('$title', ({ hex, sizeBytes, expect: expected }) => {
  const summary = parseGgufHead(bytesOf(hex), sizeBytes)
  if (expected === 'unreadable') expect(summary.format).toBe('unreadable')
  else expect(summary).toEqual({ format: 'gguf', ...expected })
})

test.each(looks)('looks like: $title', ({ hex, sizeBytes, looksLike: expected }) => {
  expect(looksLike(bytesOf(hex), sizeBytes)).toBe(expected ?? undefined)
})

test('any change of a byte, any cut and any claimed size give a value, never an error', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...gguf),
      fc.nat(),
      fc.nat(255),
      fc.nat(2000),
      fc.nat(2000),
      ({ hex }, place, byte, cut, more) => {
        const bytes = bytesOf(hex)
        if (bytes.length > 0) bytes[place % bytes.length] = byte
        const head = bytes.subarray(0, cut)
        expect(['gguf', 'unreadable']).toContain(parseGgufHead(head, head.length + more).format)
      }
    ),
    { numRuns: 2000 }
  )
})

test('truncation anywhere in a larger file keeps the facts before it, and invents none', () => {
  const whole = bytesOf(gguf[0]!.hex)
  const full = gguf[0]!.expect as Record<string, unknown>
  for (let cut = 24; cut < whole.length; cut++) {
    const summary = parseGgufHead(whole.subarray(0, cut), whole.length)
    expect(summary).toMatchObject({ format: 'gguf', complete: false })
    for (const [key, value] of Object.entries(summary))
      if (!['format', 'complete'].includes(key)) expect(value).toEqual(full[key])
  }
})

test('at most a megabyte is read', async () => {
  const asked: [number, number][] = []
  await readGgufHead(async (offset, length) => {
    asked.push([offset, length])
    return new Uint8Array(length)
  }, 5e9)
  expect(asked).toEqual([[0, 1024 * 1024]])
})
