import { describe, expect, test } from 'vitest'
import {
  ClassifyError,
  chosenOf,
  type HeaderSummary,
  planArtifacts,
  quantsOf,
  type Recognition,
  recognize,
  requireImportable
} from '../src/index.ts'

const read = (names: readonly string[], sizeBytes = 10): Recognition =>
  recognize(
    names.map((name) => ({ name, sizeBytes })),
    'normalized'
  )
const header = (dtype: string): HeaderSummary => ({
  format: 'safetensors',
  headerBytes: 10,
  tensorCount: 1,
  bytesByDtype: new Map([[dtype, 8]])
})

/** The weights of each artifact that a choice makes; all files have one dtype unless their names tell another. */
function made(names: readonly string[], choice: Parameters<typeof chosenOf>[1] = {}): Record<string, string[]> {
  const recognition = read(names)
  const { entries } = chosenOf(recognition, choice, 'bf16')
  const headers = new Map(
    entries.map(({ name }) => [name, header(/fp8/.test(name) ? 'F8_E4M3' : /fp16|split/.test(name) ? 'F16' : 'BF16')])
  )
  const { artifacts } = planArtifacts({ ...recognition, entries }, { headers, licences: [] })
  return Object.fromEntries(
    artifacts.map(({ quant, entries }) => [
      quant,
      entries.filter(({ kind }) => kind.startsWith('weights.s')).map(({ name }) => name)
    ])
  )
}

const SHARDS = ['model-00001-of-00002.safetensors', 'model-00002-of-00002.safetensors']

describe('forms of a model', () => {
  test.each([
    [[...SHARDS, 'consolidated.safetensors'], 'consolidated', ['consolidated.safetensors']],
    [[...SHARDS, 'original/model.safetensors'], 'original', ['original/model.safetensors']],
    [
      [
        ...SHARDS,
        'original/consolidated-00001-of-00002.safetensors',
        'original/consolidated-00002-of-00002.safetensors'
      ],
      'original',
      ['original/consolidated-00001-of-00002.safetensors', 'original/consolidated-00002-of-00002.safetensors']
    ]
  ])('%j: the loader’s by default, the other on request', (names, form, others) => {
    expect(made(names)).toEqual({ bf16: SHARDS })
    expect(made(names, { quants: [form] })).toEqual({ [`bf16.${form}`]: others })
    expect(made(names, { quants: [`bf16.${form}`, 'bf16'] })).toEqual({ bf16: SHARDS, [`bf16.${form}`]: others })
    const recognition = read(names)
    expect(quantsOf(recognition, 'bf16')).toEqual(['bf16'])
    const { otherForms, left, warnings } = chosenOf(recognition, {}, undefined)
    expect([...otherForms]).toEqual(others.map((name) => [name, form]))
    expect(left).toEqual(others)
    expect(warnings).toMatchObject([{ code: 'other-form', names: others }])
    expect(warnings[0]!.message).toContain(`${others.length * 10} bytes`)
  })

  test('without the loader’s form, the other one is the model', () => {
    expect(made(['consolidated.safetensors'])).toEqual({ bf16: ['consolidated.safetensors'] })
  })

  const PIPELINE = ['unet/diffusion_pytorch_model', 'vae/diffusion_pytorch_model', 'text_encoder/model']
  const full = PIPELINE.map((name) => `${name}.safetensors`)
  const half = PIPELINE.slice(0, 2).map((name) => `${name}.fp16.safetensors`)

  test('precisions of a pipeline are choices, each with the files that only one precision has', () => {
    expect(made([...full, ...half, 'model_index.json'])).toEqual({ bf16: full.toSorted() })
    expect(made([...full, ...half], { quants: ['f16'] })).toEqual({ f16: [...half, full[2]!].toSorted() })
  })

  test('single files beside the folders of a pipeline', () => {
    const names = [...full, 'sd_xl_base_1.0.safetensors', 'model_index.json']
    expect(made(names)).toEqual({ bf16: full.toSorted() })
    expect(made(names, { quants: ['sd_xl_base_1-0'] })).toEqual({
      'bf16.sd_xl_base_1-0': ['sd_xl_base_1.0.safetensors']
    })
    expect(made(names.slice(0, -1))).toEqual({ bf16: [...full, 'sd_xl_base_1.0.safetensors'].toSorted() })
  })

  test('split files in two precisions: the better one by default, and what has only one comes with both', () => {
    const folder = 'split_files/'
    const both = ['text_encoders/t5xxl', 'diffusion_models/flux'].map((name) => `${folder}${name}`)
    const rest = [`${folder}vae/ae.safetensors`, `${folder}text_encoders/clip_l.safetensors`]
    const names = [...both.flatMap((name) => [`${name}_fp16.safetensors`, `${name}_fp8_e4m3fn.safetensors`]), ...rest]
    expect(made(names)).toEqual({ f16: [...both.map((name) => `${name}_fp16.safetensors`), ...rest].toSorted() })
    expect(made(names, { quants: ['fp8'] })).toEqual({
      fp8: [...both.map((name) => `${name}_fp8_e4m3fn.safetensors`), ...rest].toSorted()
    })
  })

  test('shards of a precision, and different models, are no forms', () => {
    const shards = ['model.fp16-00001-of-00002.safetensors', 'model.fp16-00002-of-00002.safetensors']
    expect(made(shards)).toEqual({ f16: shards })
    expect(made([...SHARDS, ...shards], { quants: ['f16'] })).toEqual({ f16: shards })
    expect(made(['a.safetensors', 'b-fp16.safetensors'])).toEqual({ bf16: ['a.safetensors', 'b-fp16.safetensors'] })
  })

  test('files choose whatever they name; with upstream names everything comes', () => {
    const names = [...SHARDS, 'consolidated.safetensors']
    expect(made(names, { files: (name) => name.startsWith('con') })).toEqual({
      'bf16.consolidated': ['consolidated.safetensors']
    })
    const upstream = recognize(names.map((name) => ({ name, sizeBytes: 1 })))
    expect(chosenOf(upstream, {}, undefined).left).toEqual([])
    expect(upstream.warnings.map(({ code }) => code)).toEqual(['same-model-twice'])
  })

  test('a quant or form that is not there is refused with those that are', () => {
    expect(() => chosenOf(read([...SHARDS, 'consolidated.safetensors']), { quants: ['original'] }, 'bf16')).toThrow(
      expect.objectContaining({ code: 'E_NO_MEMBER', details: { candidates: ['bf16', 'bf16.consolidated'] } })
    )
  })
})

describe('large vocabularies', () => {
  const MIB = 2 ** 20
  const uses = (name: string, sizeBytes: number, names: 'upstream' | 'normalized' = 'normalized') =>
    recognize([{ name, sizeBytes }], names).uses.get(name)

  test.each(['tekken.json', 'qwen.tiktoken', 'tokenizer/source.spm', 'shared_vocabulary.json', 'tokenizer.model.v7'])(
    '%s is kept, however large',
    (name) => {
      expect(uses(name, 17 * MIB)).toEqual({ use: 'member', entry: 'tokenizer.tar' })
      expect(uses(name, 64 * MIB + 1)).toEqual({ use: 'skip', reason: 'unrecognised' })
      // a companion
      expect(uses(name, MIB)).toEqual({ use: 'skip', reason: 'unrecognised' })
      expect(uses(name, 17 * MIB, 'upstream')).toEqual({ use: 'skip', reason: 'unrecognised' })
    }
  )
})

describe('sets of parts', () => {
  test('parts counted from 0 are a whole set', () => {
    const names = [0, 1, 2].map((n) => `model-0000${n}-of-00003.safetensors`)
    const { entries, warnings } = read(names)
    expect(entries.map(({ part, group }) => [part, group])).toEqual(
      [1, 2, 3].map((part) => [part, 'model*3.safetensors'])
    )
    expect(warnings).toEqual([])
    expect(read(names.slice(0, 2)).warnings).toMatchObject([{ code: 'incomplete-shards' }])
    expect(read([names[0]!, 'model-00003-of-00003.safetensors']).warnings.map(({ code }) => code)).toEqual([
      'shard-numbering',
      'incomplete-shards'
    ])
    expect(recognize(names.map((name) => ({ name, sizeBytes: 1 }))).warnings.map(({ code }) => code)).toContain(
      'shard-numbering'
    )
  })

  test.each(['X.Q8_0.gguf.part1of2', 'X.gguf-split-a', 'X.gguf.001'])('a piece of a file is named: %s', (name) => {
    const { skipped, warnings } = read([name, 'y-Q4_0.gguf'])
    expect(skipped).toEqual([{ name, reason: 'split-file' }])
    expect(warnings).toMatchObject([{ code: 'split-file', names: [name] }])
    expect(() => requireImportable(read([name]))).toThrow(ClassifyError)
    expect(() => requireImportable(read([name]))).toThrow(/cat/)
  })
})
