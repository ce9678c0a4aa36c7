import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ClassifyError, normalisedName, normalisedNames, recognise } from '../src/index.ts'
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

describe('names', () => {
  test.each(names)('$from: $name', ({ name, normalized, quant, part, variant }) => {
    expect(normalisedName(name)).toBe(normalized)
    expect(normalisedName(normalized)).toBe(normalized)
    const [entry] = recognise([{ name: normalized, sizeBytes: 1 }]).entries
    expect({ quant: entry?.quant, part: entry?.part, variant: entry?.variant }).toEqual({ quant, part, variant })
  })

  test('only the base name of a GGUF changes, and normalizing twice equals normalizing once', () => {
    const piece = fc.constantFrom('Q4_K_M', 'f16', 'UD', '.', '_', '-', 'Model', '00001', 'of', 'OF', '00002', 'x', 'İ')
    const stem = fc.array(piece, { minLength: 1, maxLength: 8 }).map((parts) => parts.join(''))
    fc.assert(
      fc.property(stem, fc.constantFrom('', 'A/', 'Q8_0/B.c/'), (base, folder) => {
        const name = `${folder}${base}.gguf`
        const once = normalisedName(name)
        expect(once.startsWith(folder) && once.endsWith('.gguf')).toBe(true)
        expect(normalisedName(once)).toBe(once)
        expect(once.slice(folder.length).replaceAll(/[._]/g, '-')).toBe(
          `${base}.gguf`.toLowerCase().replaceAll(/[._]/g, '-')
        )
      })
    )
  })
})

test.each(refused)('refused: $title', ({ files, both }) => {
  for (const order of [files, files.toReversed()]) {
    let caught: unknown
    try {
      normalisedNames(order)
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
  expect(new Set(normalisedNames(files).values()).size).toBe(files.length)
})
