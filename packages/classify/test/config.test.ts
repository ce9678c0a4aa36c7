import { isQuant } from '@svc/ref'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MAX_CONFIG_DEPTH } from '../src/config.ts'
import { MAX_CONFIG_BYTES, quantOfConfig, readConfig } from '../src/index.ts'

const read = (text: string) => readConfig(new TextEncoder().encode(text))
const codes = (text: string): string[] => read(text).warnings.map(({ code }) => code)

describe('facts', () => {
  test.each([
    [
      '{"model_type":"llama","architectures":["LlamaForCausalLM"],"max_position_embeddings":8192}',
      { family: 'llama', contextLength: 8192 }
    ],
    ['{"architectures":["LlamaForCausalLM","B"]}', { family: 'LlamaForCausalLM' }],
    ['{"n_positions":1024,"n_ctx":512}', { contextLength: 1024 }],
    [
      '{"model_type":"llava","text_config":{"max_position_embeddings":4096,"model_type":"llama"}}',
      { family: 'llava', contextLength: 4096 }
    ],
    ['{"max_position_embeddings":2048,"text_config":{"max_position_embeddings":4096}}', { contextLength: 2048 }],
    ['{"max_position_embeddings":1.5,"n_ctx":7}', { contextLength: 7 }],
    ['{"max_position_embeddings":"8192"}', {}],
    ['{"max_position_embeddings":-1}', {}],
    ['{"model_type":"","architectures":"x"}', {}],
    ['{"model_type":"\\ud800"}', {}],
    [`{"model_type":"${'x'.repeat(129)}"}`, {}],
    ['{"__proto__":{"model_type":"evil","max_position_embeddings":1},"constructor":{}}', {}],
    [
      '{"time_step_limit":[0.0,Infinity],"x":-Infinity,"y":NaN,"s":"NaN \\" Infinity","model_type":"mamba2"}',
      { family: 'mamba2' }
    ],
    ['\ufeff{"model_type":"llama"}', { family: 'llama' }]
  ])('%s', (text, facts) => {
    expect(read(text)).toEqual({ upstream: text, ...facts, warnings: [] })
  })
})

test.each([
  '',
  'hello',
  '[]',
  '"x"',
  'null',
  '{',
  '{"a":1,}',
  '{"a":nan}',
  '{"a":InfinityNaN}',
  '<!doctype html>',
  '\ufeff'
])('%j is kept and has no facts', (text) => {
  const { upstream, family, warnings } = read(text)
  expect({ upstream, family }).toEqual({ upstream: text })
  expect(warnings.map(({ code }) => code)).toEqual(['config-unreadable'])
})

test('depth', () => {
  const nested = (depth: number): string => `{"model_type":"x","a":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`
  expect(read(nested(MAX_CONFIG_DEPTH)).family).toBe('x')
  expect(read(nested(MAX_CONFIG_DEPTH + 1)).family).toBeUndefined()
  expect(codes(nested(MAX_CONFIG_DEPTH + 1))).toEqual(['config-unreadable'])
  expect(read(`{"model_type":"x","a":"${'['.repeat(100)}"}`).family).toBe('x')
})

test('not UTF-8: neither facts nor text', () => {
  expect(readConfig(Uint8Array.of(0x7b, 0xff, 0x7d))).toMatchObject({ warnings: [{ code: 'config-unreadable' }] })
  expect(readConfig(Uint8Array.of(0x7b, 0xff, 0x7d)).upstream).toBeUndefined()
})

test('too long', () => {
  const padded = (length: number, filler: string): string => `{"model_type":"x","pad":"${filler.repeat(length)}"}`
  expect(readConfig(undefined).upstream).toBeUndefined()
  expect(codes(padded(MAX_CONFIG_BYTES, 'a'))).toEqual(['config-unreadable'])
  expect(read(padded(MAX_CONFIG_BYTES - 10_000, 'a'))).toMatchObject({ family: 'x', warnings: [] })
  // as a JSON string within our document every quote takes two bytes.
  expect(read(padded(300_000, '\\"'))).toMatchObject({ family: 'x', warnings: [{ code: 'config-not-kept' }] })
})

test('unterminated strings take linear time', () => {
  expect(codes('"\\'.repeat(500_000))).toContain('config-unreadable')
})

test('any bytes are kept verbatim as text, or not kept', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.json().map((text) => new TextEncoder().encode(text)),
        fc.uint8Array()
      ),
      (bytes) => {
        const { upstream } = readConfig(bytes)
        if (upstream !== undefined) expect(new TextEncoder().encode(upstream)).toEqual(bytes)
      }
    )
  )
})

test.each([
  ['{"quantization":{"group_size":64,"bits":4}}', 'mlx-4bit'],
  [
    '{"quantization":{"group_size":64,"bits":8,"mode":"affine"},"quantization_config":{"group_size":64,"bits":8}}',
    'mlx-8bit'
  ],
  ['{"quantization_config":{"group_size":64,"bits":6}}', 'mlx-6bit'],
  ['{"quantization":{"group_size":32,"bits":4,"mode":"mxfp4"}}', 'mxfp4'],
  ['{"quantization":{"group_size":16,"bits":4,"mode":"nvfp4"}}', 'nvfp4'],
  ['{"quantization_config":{"quant_method":"exl2","bits":4.0}}', 'exl2-4.0bpw'],
  ['{"quantization_config":{"quant_method":"exl3","bits":4.65}}', 'exl3-4.65bpw'],
  ['{"quantization_config":{"quant_method":"exl3"}}', undefined],
  ['{"quantization_config":{"quant_method":"gptq","bits":4,"group_size":128}}', undefined],
  ['{"quantization":{"bits":"4","group_size":64}}', undefined],
  ['{"quantization":{"bits":1e9,"group_size":64}}', undefined],
  ['{"quantization":{"bits":4}}', undefined]
])('with normalized names %s is %j', (text, quant) => {
  const config = read(text)
  expect(config.normalizedQuant).toBe(quant)
  expect(quantOfConfig(config, 'normalized')).toBe(quant ?? config.quant)
  expect(quantOfConfig(config, 'upstream')).toBe(config.quant)
  if (quant !== undefined) expect(isQuant(quant)).toBe(true)
})
