import { expect, test } from 'vitest'
import { canonicalBytes } from '../src/canonical.ts'
import { MAX_MODEL_CONFIG_BYTES, parseModelConfig, sealModelConfig } from '../src/model-config.ts'
import { errorOf } from './manifest-error.ts'
import { toBytes, toText, vectors } from './vectors.ts'

test.each(vectors.modelConfigs)('vector: $name', ({ facts, bytes, digest }) => {
  const sealed = sealModelConfig({
    family: undefined,
    weightsFormat: undefined,
    quantization: undefined,
    contextLength: undefined,
    upstream: undefined,
    ...facts
  })
  expect([toText(sealed.bytes), sealed.digest]).toEqual([bytes, digest])
  expect(parseModelConfig(toBytes(bytes))).toEqual(facts)
})

test('the upstream text comes back character by character', () => {
  const upstream = '\ufeff{ "a" : 1.0e0,\t"\\u00e9": null }\r\n\0'
  expect(parseModelConfig(sealModelConfig({ ...none, upstream }).bytes).upstream).toBe(upstream)
})

const none = {
  family: undefined,
  weightsFormat: undefined,
  quantization: undefined,
  contextLength: undefined,
  upstream: undefined
}

test('at most 1 MiB, sealed and read', () => {
  const fits = 'x'.repeat(MAX_MODEL_CONFIG_BYTES - '{"upstream":""}'.length)
  expect(sealModelConfig({ ...none, upstream: fits }).bytes).toHaveLength(MAX_MODEL_CONFIG_BYTES)
  expect(errorOf(() => sealModelConfig({ ...none, upstream: `${fits}x` }))).toBe('E_INVALID too-large')
  expect(errorOf(() => parseModelConfig(canonicalBytes({ upstream: `${fits}x` })))).toBe('E_CORRUPTION too-large')
})

test.each<[string, object]>([
  ['field', { family: '' }],
  ['field', { weightsFormat: 1 }],
  ['field', { quantization: [] }],
  ['field', { contextLength: -1 }],
  ['field', { contextLength: '4096' }],
  ['field', { upstream: {} }]
])('refused with %s: %j', (reason, facts) => {
  expect(errorOf(() => sealModelConfig({ ...none, ...facts }))).toBe(`E_INVALID ${reason}`)
  expect(errorOf(() => parseModelConfig(canonicalBytes(facts)))).toBe(`E_CORRUPTION ${reason}`)
})

test('a fraction or a lone surrogate is never sealed', () => {
  expect(errorOf(() => sealModelConfig({ ...none, contextLength: 0.5 }))).toBe('E_INVALID field')
  expect(errorOf(() => sealModelConfig({ ...none, upstream: '\ud800' }))).toBe('E_INVALID value')
})
