import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ClassifyError, type GgufIdentity, normalizedName, normalizedNames, recognize } from '../src/index.ts'
import { readVectors } from './vectors.ts'

interface Named {
  readonly from: string
  readonly name: string
  readonly normalized: string
  readonly quant?: string
  readonly part?: number
  readonly variant?: string
}
const { names, refused, accepted } = readVectors<{
  names: Named[]
  refused: { title: string; files: string[]; both: [string, string] }[]
  accepted: { title: string; files: string[] }[]
}>('names')

const HEADS: readonly GgufIdentity[] = [
  { format: 'gguf', tensorCount: 1, type: 'model', architecture: 'llama', quant: 'q8_0' },
  { format: 'gguf', tensorCount: 1, architecture: 'clip', quant: 'f16' },
  { format: 'gguf', tensorCount: 1, architecture: 'eagle3', quant: 'f16' },
  { format: 'gguf', tensorCount: 1, type: 'adapter' },
  { format: 'gguf', tensorCount: 0, architecture: 'llama' },
  { format: 'gguf', tensorCount: 1, type: 'imatrix' }
]

describe('names', () => {
  test.each(names)('$from: $name', ({ name, normalized, quant, part, variant }) => {
    expect(normalizedName(name)).toBe(normalized)
    expect(normalizedName(normalized)).toBe(normalized)
    const [entry] = recognize([{ name: normalized, sizeBytes: 1 }], 'normalized').entries
    expect({ quant: entry?.quant, part: entry?.part, variant: entry?.variant }).toEqual({ quant, part, variant })
  })

  test('only the base name of a GGUF changes, and normalizing twice equals normalizing once', () => {
    const pieces = [
      'Q4_K_M',
      'f16',
      'UD',
      '.',
      '_',
      '-',
      'Model',
      '00001',
      'of',
      'OF',
      '00002',
      'x',
      'İ',
      'MMPROJ',
      'mtp'
    ]
    const piece = fc.constantFrom(...pieces, 'dflash', 'imatrix', 'lora', 'vocab', 'NVFP4_MOE', '3.7bpw')
    const stem = fc.array(piece, { minLength: 1, maxLength: 8 }).map((parts) => parts.join(''))
    const headOf = fc.constantFrom<GgufIdentity[]>(...HEADS)
    fc.assert(
      fc.property(stem, fc.constantFrom('', 'A/', 'Q8_0/B.c/', 'MTP/'), headOf, (base, folder, head) => {
        const name = `${folder}${base}.gguf`
        const once = normalizedName(name)
        expect(once.startsWith(folder) && once.endsWith('.gguf')).toBe(true)
        expect(normalizedName(once)).toBe(once)
        const told = normalizedName(name, head)
        expect(normalizedName(told)).toBe(told)
        expect(normalizedName(told, head)).toBe(told)
      })
    )
  })
})

test.each(['_NVFP4_MOE00002', 'Q4_K_M-imatrixQ4_K_M', 'Q4_K_M.vocab-', 'Q4_K_M.lora.'])(
  'a word that is moved makes no other word count: %s',
  (base) => {
    for (const head of [undefined, ...HEADS]) {
      const told = normalizedName(`${base}.gguf`, head)
      expect([normalizedName(told), normalizedName(told, head)]).toEqual([told, told])
    }
  }
)

test.each(refused)('refused: $title', ({ files, both }) => {
  for (const order of [files, files.toReversed()]) {
    let caught: unknown
    try {
      normalizedNames(order)
    } catch (error) {
      caught = error
    }
    expect(caught).toBeInstanceOf(ClassifyError)
    const { code, message } = caught as ClassifyError
    expect(code).toBe('E_NOT_IMPORTABLE')
    for (const name of both) expect(message).toContain(JSON.stringify(name))
  }
})

test.each(accepted)('accepted: $title', ({ files }) => {
  expect(new Set(normalizedNames(files).values()).size).toBe(files.length)
})
