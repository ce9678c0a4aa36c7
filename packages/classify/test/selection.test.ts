import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  ClassifyError,
  chosenOf,
  type Facts,
  globTest,
  needsSafetensorsQuant,
  normalizedNames,
  planArtifacts,
  quantsOf,
  recognize,
  warningsOfNames
} from '../src/index.ts'

const listed = (names: readonly string[]) => recognize(names.map((name) => ({ name, sizeBytes: 10 })))

const leftOf = (...asked: Parameters<typeof chosenOf>): readonly string[] => chosenOf(...asked).left

const LISTING = [
  'model-7b-q4_k_m.gguf',
  'model-7b-q8_0-00001-of-00002.gguf',
  'model-7b-q8_0-00002-of-00002.gguf',
  'model.safetensors',
  'mmproj-f16.gguf',
  'mmproj-f32.gguf',
  'imatrix.dat',
  'tokenizer.json',
  'config.json',
  'LICENSE',
  'README.md',
  'modeling_x.py'
]

function codeOf(work: () => unknown): ClassifyError {
  try {
    work()
  } catch (error) {
    expect(error).toBeInstanceOf(ClassifyError)
    return error as ClassifyError
  }
  throw new Error('nothing was thrown')
}

describe('quants', () => {
  const recognition = listed(LISTING)

  test('come from the names and from the safetensors', () => {
    expect(quantsOf(recognition, 'bf16')).toEqual(['bf16', 'q4_k_m', 'q8_0'])
    expect(quantsOf(recognition, undefined)).toEqual(['q4_k_m', 'q8_0'])
    expect(quantsOf(listed(['adapter_config.json', 'adapter_model.safetensors']), undefined)).toEqual(['raw'])
    expect(quantsOf(listed(['README.md']), undefined)).toEqual([])
  })

  test.each([
    [['q4_k_m'], ['model-7b-q8_0-00001-of-00002.gguf', 'model-7b-q8_0-00002-of-00002.gguf', 'model.safetensors']],
    [
      ['Q8_0', 'Q8_0'],
      ['model-7b-q4_k_m.gguf', 'model.safetensors']
    ],
    [['BF16'], ['model-7b-q4_k_m.gguf', 'model-7b-q8_0-00001-of-00002.gguf', 'model-7b-q8_0-00002-of-00002.gguf']],
    [['bf16', 'q4_k_m', 'q8_0'], []]
  ])('%j leaves out %j', (quants, out) => {
    expect(leftOf(recognition, { quants }, 'bf16')).toEqual(out)
  })

  test('an unknown quant is named together with the known ones', () => {
    const { code, details } = codeOf(() => leftOf(recognition, { quants: ['q4_k_m', 'q4'] }, 'bf16'))
    expect({ code, candidates: details.candidates }).toEqual({
      code: 'E_NO_MEMBER',
      candidates: ['bf16', 'q4_k_m', 'q8_0']
    })
  })

  test('the quant of the safetensors is computed only if the choice needs it', () => {
    expect(needsSafetensorsQuant(recognition, { quants: ['q8_0'] })).toBe(true)
    expect(needsSafetensorsQuant(recognition, {})).toBe(false)
    expect(needsSafetensorsQuant(listed(['a-q8_0.gguf']), { quants: ['q8_0'] })).toBe(false)
  })
})

describe('files', () => {
  test.each([
    [
      ['*q4_k_m*'],
      [
        'imatrix.dat',
        'mmproj-f16.gguf',
        'mmproj-f32.gguf',
        'model-7b-q8_0-00001-of-00002.gguf',
        'model-7b-q8_0-00002-of-00002.gguf',
        'model.safetensors'
      ]
    ],
    [
      ['**/*q8_0*', 'mmproj-f16*'],
      ['imatrix.dat', 'mmproj-f32.gguf', 'model-7b-q4_k_m.gguf', 'model.safetensors']
    ],
    [['**'], []]
  ])('%j leaves out %j, and nothing that is shared', (globs, out) => {
    expect(leftOf(listed(LISTING), { files: globTest(globs) }, undefined)).toEqual(out)
  })

  test('patterns and quants both have to match', () => {
    const choice = { quants: ['q8_0'], files: globTest(['*-00001-*']) }
    expect(leftOf(listed(LISTING), choice, 'bf16')).not.toContain('model-7b-q8_0-00001-of-00002.gguf')
    expect(leftOf(listed(LISTING), choice, 'bf16')).toContain('model-7b-q8_0-00002-of-00002.gguf')
  })

  test('a selection without weights is refused, with or without adapters', () => {
    const recognition = listed([...LISTING, 'adapter_config.json', 'adapter_model.safetensors'])
    expect(codeOf(() => leftOf(recognition, { files: globTest(['nothing*']) }, undefined)).code).toBe(
      'E_NOT_IMPORTABLE'
    )
    expect(
      leftOf(listed(['adapter_config.json', 'adapter_model.safetensors']), { files: globTest(['x']) }, undefined)
    ).toEqual([])
  })
})

describe('aux', () => {
  const REST = [
    'm-q8_0.gguf',
    'model.safetensors',
    'model.safetensors.index.json',
    'mmproj-BF16.gguf',
    'mmproj-F16.gguf',
    'mmproj-F32.gguf',
    'sub/mmproj_model.f32.gguf',
    'sub/mmproj-model-q8_0.gguf',
    'other/mmproj.gguf',
    'imatrix.dat'
  ]
  const out = (aux: 'all' | 'none' | readonly string[], names: readonly string[] = REST, files?: string) =>
    leftOf(listed(names), { aux, ...(files !== undefined && { files: globTest([files]) }) }, undefined)
  const others = ['other/mmproj.gguf', 'sub/mmproj-model-q8_0.gguf', 'sub/mmproj_model.f32.gguf']

  test.each([
    ['all', []],
    ['none', ['imatrix.dat', 'mmproj-BF16.gguf', 'mmproj-F16.gguf', 'mmproj-F32.gguf', ...others]],
    [
      ['F16', 'imatrix'],
      ['mmproj-BF16.gguf', 'mmproj-F32.gguf', ...others]
    ],
    [
      ['f32'],
      ['imatrix.dat', 'mmproj-BF16.gguf', 'mmproj-F16.gguf', 'other/mmproj.gguf', 'sub/mmproj-model-q8_0.gguf']
    ],
    [['one'], ['imatrix.dat', 'mmproj-BF16.gguf', 'mmproj-F32.gguf', 'sub/mmproj-model-q8_0.gguf']],
    [
      ['one', 'imatrix', 'bf16'],
      ['mmproj-F32.gguf', 'sub/mmproj-model-q8_0.gguf']
    ]
  ] as const)('%j leaves out %j', (aux, expected) => {
    expect(out(aux)).toEqual(expected)
  })

  test('"one" prefers f16, then bf16, then f32, then any other', () => {
    const projectors = (...words: string[]) => ['m-q8_0.gguf', ...words.map((word) => `mmproj-${word}.gguf`)]
    expect(out(['one'], projectors('f32', 'q8_0', 'bf16'))).toEqual(['mmproj-f32.gguf', 'mmproj-q8_0.gguf'])
    expect(out(['one'], projectors('f32', 'q8_0'))).toEqual(['mmproj-q8_0.gguf'])
    expect(out(['one'], projectors('q8_0', 'q4_0'))).toEqual(['mmproj-q8_0.gguf'])
    expect(out(['one'], projectors())).toEqual([])
  })

  test('chooses among the files that match the patterns', () => {
    expect(out(['one'], ['m-q8_0.gguf', 'mmproj-f16.gguf', 'mmproj-f32.gguf'], '*{_0,f32}.gguf')).toEqual([
      'mmproj-f16.gguf'
    ])
  })

  test('an unknown word is an error that lists the known ones', () => {
    for (const aux of [['q4_0'], ['f16', 'imatrixes'], ['none']]) {
      const { code, details } = codeOf(() => out(aux))
      expect([code, details.candidates]).toEqual(['E_NO_MEMBER', ['bf16', 'f16', 'f32', 'imatrix', 'q8_0']])
    }
    expect(codeOf(() => out(['imatrix'], ['m-q8_0.gguf'])).details.candidates).toEqual([])
  })
})

describe('an import of chosen quants', () => {
  const factsOf = (recognition: ReturnType<typeof recognize>): Facts => ({
    headers: new Map(
      recognition.entries
        .filter(({ kind }) => kind.startsWith('weights.') && kind !== 'weights.aux')
        .map(({ name, kind }) => [
          name,
          kind === 'weights.gguf'
            ? { format: 'gguf', version: 3, bigEndian: false, complete: true, architecture: `of-${name}` }
            : { format: 'safetensors', headerBytes: 8, tensorCount: 1, bytesByDtype: new Map([['BF16', 2]]) }
        ])
    ),
    config: recognition.config === undefined ? undefined : { family: 'llama', warnings: [] },
    licences: recognition.licences.map(({ name }) => ({
      name,
      digest: `sha256:${'0'.repeat(64)}` as never,
      bytes: new TextEncoder().encode('terms')
    }))
  })

  test('plans the artifacts that an import of everything plans', () => {
    const weights = ['a-q4_0.gguf', 'b-q4_0.gguf', 'sub/c-q8_0.gguf', 'd.gguf', 'model.safetensors']
    const others = ['mmproj-f16.gguf', 'tokenizer.json', 'config.json', 'LICENSE', 'x.bin', 'imatrix.dat']
    fc.assert(
      fc.property(fc.subarray(weights, { minLength: 1 }), fc.subarray(others), fc.nat(), (some, more, seed) => {
        const names = [...some, ...more]
        const recognition = listed(names)
        const whole = planArtifacts(recognition, factsOf(recognition)).artifacts
        const quants = whole.map(({ quant }) => quant).filter((_, index) => ((seed >> index) & 1) === 1)
        if (quants.length === 0) return
        const out = new Set(leftOf(recognition, { quants }, 'bf16'))
        const rest = listed(names.filter((name) => !out.has(name)))
        expect(planArtifacts(rest, factsOf(rest)).artifacts).toEqual(
          whole.filter(({ quant }) => quants.includes(quant))
        )
      })
    )
  })
})

describe('models that meet in one artifact', () => {
  const warningsOf = (names: readonly string[]) => {
    const recognition = listed(names)
    const headers = new Map(
      recognition.entries.map(
        ({ name }) => [name, { format: 'gguf', version: 3, bigEndian: false, complete: true }] as const
      )
    )
    const { warnings } = planArtifacts(recognition, { headers, licences: [] })
    // the names are enough
    expect(warningsOfNames(recognition)).toEqual(warnings)
    return warnings.map(({ code }) => code)
  }
  test.each([
    [['llama-7b-q4_k_m.gguf', 'qwen-7b-q4_k_m.gguf'], ['models-meet']],
    [['a/llama-7b-q4_k_m.gguf', 'b/qwen-7b-q4_k_m.gguf'], []],
    [['llama-7b-q4_k_m.gguf', 'llama-7b-q8_0.gguf'], []],
    [['m-q4_0-00001-of-00002.gguf', 'm-q4_0-00002-of-00002.gguf'], []],
    [['falcon3-7b.gguf', 'qwen3-8b.gguf'], ['models-meet']],
    [['Model-7B-Q4_K_M.gguf', 'Model-7B-Q8_0.gguf'], ['quants-meet']],
    [['Model-7B-Q4_K_M.gguf', 'Other-7B-Q4_K_M.gguf'], ['models-meet']]
  ])('%j: %j', (names, codes) => expect(warningsOf(names)).toEqual(codes))
})

describe('sidecars with normalized names', () => {
  const normalized = (names: readonly string[]) =>
    recognize(
      [...normalizedNames(names).values()].map((name) => ({ name, sizeBytes: 10 })),
      'normalized'
    )
  const MODEL = ['M-Q4_K_M.gguf', 'M-Q8_0.gguf', 'M-BF16.gguf']
  const beside = (names: readonly string[], aux: readonly string[]): Record<string, string[]> => {
    const { entries } = chosenOf(normalized(names), { aux }, undefined)
    const quants = entries.flatMap(({ kind, quant }) => (kind === 'weights.gguf' ? [quant!] : []))
    return Object.fromEntries(
      quants.map((quant) => [
        quant,
        entries
          .filter(({ kind, goesWith }) => kind === 'weights.aux' && (goesWith?.includes(quant) ?? true))
          .map(({ name }) => name)
      ])
    )
  }

  test('each quant gets one projector and one draft head, the nearest', () => {
    const projectors = ['mmproj-F16.gguf', 'mmproj-BF16.gguf', 'mmproj-F32.gguf']
    expect(beside([...MODEL, ...projectors, 'mtp-M-Q4_0.gguf', 'mtp-M-Q8_0.gguf', 'X.imatrix'], ['one'])).toEqual({
      bf16: ['mmproj-bf16.gguf', 'mtp-m-q8_0.gguf'],
      q4_k_m: ['mmproj-f16.gguf', 'mtp-m-q4_0.gguf'],
      q8_0: ['mmproj-f16.gguf', 'mtp-m-q8_0.gguf']
    })
    expect(beside([...MODEL, ...projectors, 'mmproj-Q8_0.gguf'], ['one']).q4_k_m).toEqual(['mmproj-q8_0.gguf'])
  })

  test('models in one listing get their own: by folder, then by name', () => {
    const names = ['a/x-Q8_0.gguf', 'b/x-Q8_0.gguf', 'a/mmproj-F16.gguf', 'b/mmproj-F32.gguf']
    expect(beside(names, ['one'])).toEqual({
      'q8_0.a-x': ['a/mmproj-f16.gguf'],
      'q8_0.b-x': ['b/mmproj-f32.gguf']
    })
    const named = ['gemma-Q8_0.gguf', 'qwen-Q8_0.gguf', 'mmproj-gemma-F16.gguf', 'mmproj-qwen-F16.gguf']
    expect(beside(named, ['one'])).toEqual({
      'q8_0.gemma': ['mmproj-gemma-f16.gguf'],
      'q8_0.qwen': ['mmproj-qwen-f16.gguf']
    })
  })

  test('words choose others', () => {
    const names = [
      'M-Q8_0.gguf',
      'mmproj-F16.gguf',
      'mmproj-BF16.gguf',
      'mtp-M-Q4_0.gguf',
      'mtp-M-Q8_0.gguf',
      'lora-x-F16.gguf',
      'M.imatrix'
    ]
    const of = (...aux: string[]) => beside(names, aux).q8_0
    expect(of('bf16', 'draft')).toEqual(['mmproj-bf16.gguf', 'mtp-m-q8_0.gguf'])
    expect(of('mmproj', 'draft:Q4_0')).toEqual(['mmproj-f16.gguf', 'mtp-m-q4_0.gguf'])
    expect(of('lora', 'imatrix')).toEqual(['M.imatrix', 'lora-x-f16.gguf'])
    expect(codeOf(() => of('draft:f16'))).toMatchObject({
      code: 'E_NO_MEMBER',
      details: { candidates: ['bf16', 'draft:q4_0', 'draft:q8_0', 'f16', 'imatrix', 'lora'] }
    })
    expect(beside(['lora-x-F16.gguf', 'lora-y-F16.gguf'], ['one'])).toEqual({})
    expect(chosenOf(normalized(['lora-x-F16.gguf']), { aux: ['one'] }, undefined).entries).toHaveLength(1)
  })

  test('a GGUF beside safetensors of its quant is a choice of its own, also alone', () => {
    const recognition = normalized(['m-BF16.gguf', 'model.safetensors'])
    expect(quantsOf(recognition, 'bf16')).toEqual(['bf16', 'bf16.gguf'])
    expect(leftOf(recognition, { quants: ['bf16.gguf'] }, 'bf16')).toEqual(['model.safetensors'])
    expect(chosenOf(recognition, { quants: ['bf16.gguf'] }, 'bf16').entries[0]!.quant).toBe('bf16.gguf')
    expect(quantsOf(listed(['m-bf16.gguf', 'model.safetensors']), 'bf16')).toEqual(['bf16'])
  })
})
