import { digestFromHex } from '@svc/ref'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type Facts,
  type HeaderSummary,
  planArtifacts,
  readConfig,
  readHeader,
  recognize,
  requiredReads,
  SPEC_VERSION
} from '../src/index.ts'

const st = (bytes: Record<string, number>): HeaderSummary => ({
  format: 'safetensors',
  headerBytes: 100,
  tensorCount: 1,
  bytesByDtype: new Map(Object.entries(bytes))
})
const gguf = (more: object = {}): HeaderSummary => ({
  format: 'gguf',
  version: 3,
  bigEndian: false,
  complete: true,
  ...more
})
const unreadable: HeaderSummary = {
  format: 'unreadable',
  problem: 'the magic "GGUF" is missing',
  looksLike: 'an HTML page'
}

const digest = digestFromHex('ab'.repeat(32))

/** Files of a repository with what was read of them; `config` and licences by their text. */
function plan(headers: Record<string, HeaderSummary | null>, texts: Record<string, string> = {}) {
  const encoder = new TextEncoder()
  const files = [
    ...Object.keys(headers).map((name) => ({ name, sizeBytes: 1000 })),
    ...Object.entries(texts).map(([name, text]) => ({ name, sizeBytes: encoder.encode(text).length }))
  ]
  const recognition = recognize(files)
  const facts: Facts = {
    headers: new Map(Object.entries(headers).flatMap(([name, header]) => (header ? [[name, header] as const] : []))),
    config: texts['config.json'] === undefined ? undefined : readConfig(encoder.encode(texts['config.json'])),
    licences: recognition.licences.map(({ name }) => ({ name, digest, bytes: encoder.encode(texts[name]) }))
  }
  const { artifacts, warnings } = planArtifacts(recognition, facts)
  return {
    artifacts,
    byQuant: Object.fromEntries(artifacts.map(({ quant, entries }) => [quant, entries.map(({ name }) => name)])),
    warnings: warnings.map(({ code }) => code)
  }
}

describe('artifacts', () => {
  test('one per quant, each with every shared entry, in manifest order', () => {
    const { byQuant } = plan({
      'm-q8_0.gguf': gguf(),
      'm-q4_0-00002-of-00002.gguf': gguf(),
      'm-q4_0-00001-of-00002.gguf': gguf(),
      'M-Q5_0.gguf': gguf(),
      'mmproj-f16.gguf': null,
      'tokenizer.json': null,
      chat_template: null,
      'modeling_x.py': null,
      'lora/adapter_config.json': null,
      'lora/adapter_model.safetensors': null
    })
    const shared = ['mmproj-f16.gguf', 'tokenizer.tar', 'chat_template', 'lora/adapter.tar', 'modeling_x.py']
    expect(byQuant).toEqual({
      q4_0: ['m-q4_0-00001-of-00002.gguf', 'm-q4_0-00002-of-00002.gguf', ...shared],
      q8_0: ['m-q8_0.gguf', ...shared],
      raw: ['M-Q5_0.gguf', ...shared]
    })
    expect(Object.keys(byQuant)).toEqual(['q4_0', 'q8_0', 'raw'])
  })

  test('both formats of one quant become one artifact, with a warning', () => {
    const { byQuant, warnings, artifacts } = plan({ 'm-bf16.gguf': gguf(), 'a.safetensors': st({ BF16: 9 }) })
    expect(byQuant).toEqual({ bf16: ['a.safetensors', 'm-bf16.gguf'] })
    expect(warnings).toEqual(['formats-meet'])
    expect(artifacts[0]!.modelConfig.weightsFormat).toBe('gguf+safetensors')
  })

  test('formats of two quants are two artifacts', () => {
    const { byQuant, warnings } = plan({ 'm-q4_0.gguf': gguf(), 'a.safetensors': st({ F16: 9 }) })
    expect(byQuant).toEqual({ f16: ['a.safetensors'], q4_0: ['m-q4_0.gguf'] })
    expect(warnings).toEqual([])
  })

  test('adapters alone are one artifact, raw, without a weights format', () => {
    const { artifacts, byQuant } = plan({ 'adapter_config.json': null, 'adapter_model.safetensors': null })
    expect(byQuant).toEqual({ raw: ['adapter.tar'] })
    expect(artifacts[0]!.modelConfig).toEqual({ quantization: 'raw' })
  })

  test('a listing without weights and adapters has no artifacts', () => {
    expect(() => plan({ 'tokenizer.json': null })).toThrow(expect.objectContaining({ code: 'E_NOT_IMPORTABLE' }))
  })

  test('facts that the caller did not read are an error', () => {
    for (const [files, name] of [
      [['x.gguf'], 'x.gguf'],
      [['x.safetensors'], 'x.safetensors']
    ] as const)
      expect(() =>
        planArtifacts(recognize(files.map((file) => ({ name: file, sizeBytes: 1 }))), {
          headers: new Map(),
          licences: []
        })
      ).toThrow(expect.objectContaining({ code: 'E_MISSING_FACT', details: { name } }))
    const withConfig = recognize(['x.gguf', 'config.json'].map((name) => ({ name, sizeBytes: 1 })))
    expect(() => planArtifacts(withConfig, { headers: new Map([['x.gguf', gguf()]]), licences: [] })).toThrow(
      expect.objectContaining({ details: { name: 'config.json' } })
    )
  })
})

describe('quant derivation', () => {
  const config = JSON.stringify({ quantization_config: { quant_method: 'gptq' } })
  test.each([
    [
      'the dtype with the most bytes over all weights',
      { 'a.safetensors': st({ F32: 10 }), 'b.safetensors': st({ BF16: 6 }), 'c/d.safetensors': st({ BF16: 5 }) },
      {},
      ['bf16']
    ],
    ['config.json before the dtypes', { 'a.safetensors': st({ F16: 10 }) }, { 'config.json': config }, ['gptq']],
    [
      'a GGUF name before config.json',
      { 'a-q4_0.gguf': gguf(), 'b.gguf': gguf() },
      { 'config.json': config },
      ['q4_0', 'raw']
    ],
    [
      'a nested config.json decides nothing',
      { 'a.safetensors': st({ F16: 10 }) },
      { 'x/config.json': config },
      ['f16']
    ],
    ['a safetensors name decides nothing', { 'a-q4_0.safetensors': st({ F16: 10 }) }, {}, ['f16']],
    [
      'an unreadable header counts for no dtype',
      { 'a.safetensors': unreadable, 'b.safetensors': st({ F16: 1 }) },
      {},
      ['f16']
    ],
    ['no readable header', { 'a.safetensors': unreadable }, {}, ['raw']],
    ['a GGUF header decides nothing', { 'a.gguf': gguf({ fileType: 2 }) }, {}, ['raw']]
  ])('%s', (_title, headers, texts, quants) => {
    expect(
      Object.keys(plan(headers as Record<string, HeaderSummary>, texts as Record<string, string>).byQuant)
    ).toEqual(quants)
  })

  test('adapters do not affect the dtype', () => {
    expect(
      requiredReads(
        recognize(['adapter_config.json', 'adapter_model.safetensors'].map((name) => ({ name, sizeBytes: 1 })))
      )
    ).toEqual([])
  })
})

describe('model config', () => {
  test('from config.json, verbatim', () => {
    const text = '{ "model_type": "llama",\n "rope_theta": 1e6, "n_ctx": 4096 }'
    const { artifacts } = plan(
      { 'm-q4_0.gguf': gguf({ architecture: 'other', contextLength: 1 }) },
      { 'config.json': text }
    )
    expect(artifacts[0]!.modelConfig).toEqual({
      family: 'llama',
      weightsFormat: 'gguf',
      quantization: 'q4_0',
      contextLength: 4096,
      upstream: text
    })
  })

  test('without config.json from the first GGUF with the facts', () => {
    const { artifacts } = plan({
      'a-q4_0.gguf': unreadable,
      'b-q4_0.gguf': gguf({ architecture: 'qwen3' }),
      'c-q4_0.gguf': gguf({ architecture: 'x', contextLength: 512 }),
      'd-q8_0.gguf': gguf()
    })
    expect(artifacts.map(({ modelConfig }) => modelConfig)).toEqual([
      { family: 'qwen3', weightsFormat: 'gguf', quantization: 'q4_0', contextLength: 512 },
      { weightsFormat: 'gguf', quantization: 'q8_0' }
    ])
  })
})

test('annotations are the rules’ version and the licences', () => {
  const { artifacts } = plan({ 'm-q4_0.gguf': gguf(), 'm-q8_0.gguf': gguf() }, { LICENSE: 'ours', NOTICE: 'n' })
  for (const { annotations } of artifacts)
    expect(annotations).toEqual({
      'svc.specVersion': SPEC_VERSION,
      'svc.license': 'LicenseRef-sha256-abababababab',
      'svc.license.file.LICENSE': 'ours',
      'svc.license.file.NOTICE': 'n'
    })
})

describe('warnings', () => {
  test.each([
    ['an unreadable header', { 'm-q4_0.gguf': unreadable }, ['unreadable-header']],
    ['a projector under another name', { 'x-mmproj-f16.gguf': gguf({ type: 'mmproj' }) }, ['header-type']],
    ['an ordinary header', { 'm.gguf': gguf({ type: 'model', splitNo: 0, splitCount: 1 }) }, []],
    [
      'split keys that agree with the names',
      {
        'm-00001-of-00002.gguf': gguf({ splitNo: 0, splitCount: 2 }),
        'm-00002-of-00002.gguf': gguf({ splitNo: 1, splitCount: 2 })
      },
      []
    ],
    ['another part', { 'm-00001-of-00001.gguf': gguf({ splitNo: 1, splitCount: 2 }) }, ['split-mismatch']],
    ['a part by its header alone', { 'm.gguf': gguf({ splitNo: 1, splitCount: 2 }) }, ['split-mismatch']],
    ['an unreadable config.json', { 'm.gguf': gguf(), 'config.json': null }, ['config-unreadable']],
    [
      'those of the recognition come first',
      { 'm-00001-of-00002.gguf': unreadable },
      ['incomplete-shards', 'unreadable-header']
    ]
  ])('%s', (_title, headers, codes) => {
    const { 'config.json': config, ...rest } = headers as Record<string, HeaderSummary | null>
    expect(plan(rest, config === undefined ? {} : { 'config.json': 'no JSON' }).warnings).toEqual(codes)
  })
})

test('the plan names the files to read, and how much of each', () => {
  const names = [
    'LICENSE',
    'NOTICE',
    'a.safetensors',
    'b.gguf',
    'config.json',
    'x/config.json',
    'tokenizer.json',
    'mmproj.gguf',
    'adapter_config.json',
    'adapter_model.safetensors'
  ]
  const reads = requiredReads(recognize(names.map((name) => ({ name, sizeBytes: 7 }))))
  expect(reads.map(({ what, name, sizeBytes, maxBytes }) => [what, name, sizeBytes, maxBytes])).toEqual([
    ['config', 'config.json', 7, 1048576],
    ['gguf-head', 'b.gguf', 7, 1048576],
    ['licence', 'LICENSE', 7, 262144],
    ['licence', 'NOTICE', 7, 262144],
    ['safetensors-header', 'a.safetensors', 7, 100000008]
  ])
})

test('the plan does not depend on the order of the listing, nor on that of the facts', async () => {
  const files = new Map(
    Object.entries({
      LICENSE: 'one',
      COPYING: 'two',
      'config.json': '{"model_type":"x"}',
      'm-q4_0.gguf': 'nonsense',
      'n.gguf': '',
      'a.safetensors': 'more',
      'b.safetensors': '<html>',
      'tokenizer.json': '{}',
      'z/vocab.txt': 'v',
      chat_template: '',
      'chat_template.jinja': 'j',
      'README.md': ''
    }).map(([name, text]) => [name, new TextEncoder().encode(text)])
  )
  const planOf = async (order: readonly string[]) => {
    const recognition = recognize(order.map((name) => ({ name, sizeBytes: files.get(name)!.length })))
    const headers = new Map<string, HeaderSummary>()
    for (const read of requiredReads(recognition)) {
      const bytes = files.get(read.name)!
      if (read.what === 'gguf-head' || read.what === 'safetensors-header')
        headers.set(read.name, await readHeader(read, async (offset, length) => bytes.slice(offset, offset + length)))
    }
    const licences = order
      .filter((name) => recognition.uses.get(name)!.use === 'licence')
      .map((name) => ({ name, digest, bytes: files.get(name)! }))
    return planArtifacts(recognition, { headers, config: readConfig(files.get('config.json')), licences })
  }
  const reference = await planOf([...files.keys()])
  expect(reference.artifacts.map(({ quant }) => quant)).toEqual(['q4_0', 'raw'])
  await fc.assert(
    fc.asyncProperty(fc.shuffledSubarray([...files.keys()], { minLength: files.size }), async (order) => {
      expect(await planOf(order)).toEqual(reference)
    }),
    { numRuns: 30 }
  )
})
