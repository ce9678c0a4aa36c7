import { describeFuzz } from '@svc/testkit/fuzz'
import { readConfig } from '../src/config.ts'
import { ClassifyError } from '../src/errors.ts'
import { parseGgufHead } from '../src/gguf.ts'
import { ggufDefect } from '../src/gguf-tensors.ts'
import { detectLicence } from '../src/licence.ts'
import { checkNames } from '../src/names.ts'
import { recognize } from '../src/recognize.ts'
import { SafetensorsHeader } from '../src/safetensors.ts'
import { readVectors } from './vectors.ts'

interface Headers {
  readonly gguf: readonly { readonly hex: string }[]
  readonly safetensors: readonly { readonly header: string; readonly dataBytes: number }[]
}
const headers = readVectors<Headers>('headers')
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
const expected = (error: unknown): string | undefined =>
  error instanceof ClassifyError ? `${error.code} ${error.details.reason ?? ''}` : undefined

describeFuzz([
  {
    name: 'gguf',
    seeds: headers.gguf.map(({ hex }) => Buffer.from(hex, 'hex')),
    dictionary: [
      'GGUF',
      'general.architecture',
      'general.type',
      'split.no',
      'split.count',
      '.context_length',
      '\x08\0\0\0',
      '\x09\0\0\0'
    ],
    run: (input) => {
      ggufDefect(input, input.length)
      const summary = parseGgufHead(input, input.length + 1_000)
      return summary.format === 'gguf' ? Object.keys(summary).join() : summary.problem.replaceAll(/\d+/g, '#')
    },
    // its refusals are values.
    expected: () => undefined
  },
  {
    name: 'safetensors',
    seeds: headers.safetensors.map(({ header }) => header),
    dictionary: [
      '"__metadata__":{',
      '"dtype":"BF16"',
      '"shape":[',
      '"data_offsets":[0,',
      '\\u0000',
      '\\ud800',
      '{',
      '}',
      '[',
      ']',
      '"',
      ',',
      ':',
      '1e309',
      '-0'
    ],
    run: (input) => {
      const header = new SafetensorsHeader(input.length, 64)
      header.push(input)
      return `${Math.min(header.end().tensorCount, 8)}`
    },
    // the reader around it turns any of them into a value; what matters here is that it ends, soon and with little memory.
    expected: (error) => (error instanceof RangeError || error instanceof TypeError ? undefined : (error as Error).name)
  },
  {
    name: 'config-json',
    seeds: [
      '{"model_type":"llama","max_position_embeddings":4096,"quantization_config":{"quant_method":"gptq","format":"x"}}',
      '{"text_config":{"model_type":"qwen","max_position_embeddings":1}}',
      '{"a":NaN}'
    ],
    dictionary: [
      '"quantization_config":',
      '"quant_method":',
      '"text_config":',
      '"model_type":',
      'NaN',
      'Infinity',
      '__proto__',
      '[[[[[[[[',
      '{"a":',
      '\\ud800'
    ],
    run: (input) => {
      const { warnings, ...facts } = readConfig(input)
      return `${Object.keys(facts).join()} ${warnings.length}`
    },
    expected: () => undefined
  },
  {
    name: 'listing-names',
    seeds: [
      'model-00001-of-00003.safetensors\nmodel-00002-of-00003.safetensors\nconfig.json\ntokenizer.json\nLICENSE',
      'Model-7B-Q4_K_M.gguf\nmmproj-F16.gguf\nlora/adapter_model.safetensors\nlora/adapter_config.json'
    ],
    dictionary: [
      '../',
      './',
      '//',
      '\\',
      '\0',
      '\u0301',
      'é',
      '.gguf',
      '.safetensors',
      '-00001-of-00002',
      'adapter_config.json',
      'checkpoint-1/',
      '\n',
      '\u202e'
    ],
    maxBytes: 4_096,
    run: (input) => {
      const names = decoder.decode(input).split('\n')
      checkNames(names)
      const recognition = recognize(names.map((name) => ({ name, sizeBytes: 10 })))
      return Object.entries(recognition)
        .map(([key, value]) => `${key}${Array.isArray(value) ? Math.min(value.length, 4) : ''}`)
        .join()
    },
    expected
  },
  {
    name: 'licence-text',
    seeds: [
      'Permission is hereby granted, free of charge, to any person obtaining a copy',
      'Apache License Version 2.0, January 2004'
    ],
    dictionary: ['END OF TERMS AND CONDITIONS', 'Copyright (c)', 'http://', '<a href=', '\r\n', '\ufeff'],
    maxBytes: 8_192,
    run: (input) => String(detectLicence(decoder.decode(input))),
    expected: () => undefined
  }
])
