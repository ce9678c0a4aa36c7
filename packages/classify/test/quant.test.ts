import { CONFIG_QUANT_FORMATS, CONFIG_QUANT_METHODS, isQuant, isQuantToken } from '@svc/ref'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { dtypeQuant, ggufQuant, readConfig } from '../src/index.ts'
import { readVectors } from './vectors.ts'

interface Vectors {
  readonly config: readonly { quantization_config: unknown; quant: string | null }[]
  readonly dtypes: readonly { bytes: Record<string, number>; quant: string }[]
}
const vectors = readVectors<Vectors>('quants')

test.each(vectors.config)('config.json $quantization_config', ({ quantization_config, quant }) => {
  expect(readConfig(new TextEncoder().encode(JSON.stringify({ quantization_config }))).quant).toBe(quant ?? undefined)
})

test('the vectors name every word of the vocabulary', () => {
  const seen = new Set(vectors.config.map(({ quant }) => quant))
  expect([...CONFIG_QUANT_METHODS, ...CONFIG_QUANT_FORMATS].filter((word) => !seen.has(word))).toEqual([])
})

test.each(vectors.dtypes)('dtypes $bytes', ({ bytes, quant }) => {
  expect(dtypeQuant(new Map(Object.entries(bytes)))).toBe(quant)
  expect(dtypeQuant(new Map(Object.entries(bytes).reverse()))).toBe(quant)
})

test('a GGUF quant is the longest run that ends the name', () => {
  const word = fc.constantFrom(
    'q4_0',
    'ud',
    'q4_k_m',
    '2bit',
    'f16',
    'nvfp4',
    'model',
    '7b',
    'Q8_0',
    '',
    'a.b',
    'q4_xxxxxxxxxxxxxxxxxxxxxxxxx'
  )
  fc.assert(
    fc.property(
      fc.array(word, { minLength: 1, maxLength: 6 }),
      fc.constantFrom('', '-00001-of-00002', '_00001_of_00002'),
      (words, shard) => {
        const runs = words.map((_, i) => words.slice(i).join('-'))
        const quant = ggufQuant(`sub-q8_0/${words.join('-')}${shard}.gguf`)
        expect(quant).toBe(runs.find(isQuantToken) ?? 'raw')
        expect(isQuant(quant)).toBe(true)
      }
    )
  )
})
