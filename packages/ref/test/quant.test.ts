import { expect, test } from 'vitest'
import { CONFIG_QUANT_FORMATS, CONFIG_QUANT_METHODS, isQuant, isQuantToken, QUANT_WORDS } from '../src/index.ts'
import { vectors } from './vectors.ts'

const { tokens, wordsOnly, invalid } = vectors.quants

test.each(tokens)('token %j', (text) => {
  expect(isQuant(text)).toBe(true)
  expect(isQuantToken(text)).toBe(true)
})

test.each(wordsOnly)('closed word %j', (text) => {
  expect(isQuant(text)).toBe(true)
  expect(isQuantToken(text)).toBe(false)
  expect(QUANT_WORDS).toContain(text)
})

test.each(invalid)('not a quant %j', (text) => {
  expect(isQuant(text)).toBe(false)
  expect(isQuantToken(text)).toBe(false)
})

test('the closed words are raw, nvfp4, ud-nvfp4 and what a config.json can yield, each once', () => {
  expect(QUANT_WORDS.toSorted()).toEqual(
    [...new Set(['raw', 'nvfp4', 'ud-nvfp4', ...CONFIG_QUANT_METHODS, ...CONFIG_QUANT_FORMATS])].sort()
  )
  expect(QUANT_WORDS.every(isQuant)).toBe(true)
  expect(QUANT_WORDS.filter((word) => !isQuantToken(word)).sort()).toEqual([...wordsOnly].sort())
})
