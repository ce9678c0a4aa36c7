import { describe, expect, test } from 'vitest'
import {
  ClassifyError,
  type GgufIdentity,
  headsToRead,
  isImportable,
  normalizedName,
  normalizedNames,
  readGgufIdentity,
  recognize,
  requireImportable
} from '../src/index.ts'
import { ggufBytes } from './gguf-bytes.ts'

const head = (of: Partial<GgufIdentity>): GgufIdentity => ({ format: 'gguf', tensorCount: 9, ...of })
const MODEL = head({ type: 'model', architecture: 'llama', quant: 'q4_k_m' })

function roleIn(name: string, of?: GgufIdentity): string | undefined {
  const { entries, skipped } = recognize([{ name: normalizedName(name, of), sizeBytes: 1 }], 'normalized')
  return entries[0]?.role ?? entries[0]?.kind ?? skipped[0]?.reason
}

describe('the role of a GGUF', () => {
  test.each<[name: string, of: GgufIdentity | undefined, role: string, normalized: string]>([
    ['gemma-4-E2B-it-mmproj.gguf', undefined, 'vision-projector', 'mmproj-gemma-4-e2b-it.gguf'],
    ['X.mmproj-f16.gguf', undefined, 'vision-projector', 'mmproj-x-f16.gguf'],
    ['mmproj/vision-F16.gguf', undefined, 'vision-projector', 'mmproj/mmproj-vision-f16.gguf'],
    ['vision-Q8_0.gguf', head({ type: 'mmproj' }), 'vision-projector', 'mmproj-vision-q8_0.gguf'],
    ['vision.gguf', head({ architecture: 'clip', quant: 'f16' }), 'vision-projector', 'mmproj-vision-f16.gguf'],
    ['mmproj.gguf', head({ architecture: 'clip', quant: 'f16' }), 'vision-projector', 'mmproj-f16.gguf'],
    ['X-mmproj-Q4_K_M.gguf', MODEL, 'weights.gguf', 'x-mm-proj-q4_k_m.gguf'],
    ['mtp-X-Q4_K_M.gguf', MODEL, 'draft', 'mtp-x-q4_k_m.gguf'],
    ['MTP/X-Q8_0.gguf', undefined, 'draft', 'MTP/mtp-x-q8_0.gguf'],
    ['X-DFlash.Q8_0.gguf', undefined, 'draft', 'dflash-x-q8_0.gguf'],
    ['X-EAGLE3.gguf', head({ architecture: 'eagle3', quant: 'f16' }), 'draft', 'eagle3-x-f16.gguf'],
    ['head-Q8_0.gguf', head({ architecture: 'dflash-draft' }), 'draft', 'dflash-head-q8_0.gguf'],
    ['X-assistant-Q8_0.gguf', head({ architecture: 'gemma4-assistant' }), 'draft', 'mtp-x-assistant-q8_0.gguf'],
    ['X-DFlash-Q8_0.gguf', MODEL, 'weights.gguf', 'x-d-flash-q8_0.gguf'],
    ['Hy3-Q4_K_M-mtp.gguf', undefined, 'weights.gguf', 'hy3-mtp-q4_k_m.gguf'],
    ['X-F16-LoRA.gguf', head({ type: 'adapter' }), 'adapter', 'lora-x-lora-f16.gguf'],
    ['X-LoRA-Q4_K_M.gguf', MODEL, 'weights.gguf', 'x-lora-q4_k_m.gguf'],
    ['LoRA-X-F16.gguf', MODEL, 'weights.gguf', 'x-lora-f16.gguf'],
    ['X-imatrix.gguf', undefined, 'imatrix', 'x-imatrix.gguf'],
    ['calibration.gguf', head({ type: 'imatrix' }), 'imatrix', 'imatrix-calibration.gguf'],
    ['X-IQ2XXS-OutQ8-imatrix.gguf', undefined, 'weights.gguf', 'x-iq2xxs-outq8-imatrix.gguf'],
    ['X-imatrix.gguf', MODEL, 'weights.gguf', 'x-imat-q4_k_m.gguf'],
    ['ggml-vocab-llama.gguf', undefined, 'vocabulary', 'ggml-vocab-llama.gguf'],
    ['llama.gguf', head({ architecture: 'llama', tensorCount: 0 }), 'vocabulary', 'vocab-llama.gguf'],
    ['llama.gguf', head({ architecture: 'llama', tensorCount: 0, splitCount: 3 }), 'weights.gguf', 'llama.gguf']
  ])('%s', (name, of, role, normalized) => {
    expect(normalizedName(name, of)).toBe(normalized)
    expect(normalizedName(normalized)).toBe(normalized)
    expect(roleIn(name, of)).toBe(role)
  })

  test('an unreadable header leaves the word of the name', () => {
    const unreadable = { format: 'unreadable', problem: 'it is cut', looksLike: undefined } as const
    expect(normalizedName('X-mmproj-F16.gguf', unreadable)).toBe('mmproj-x-f16.gguf')
  })

  test('with upstream names nothing of this applies', () => {
    for (const name of ['mtp-x-q8_0.gguf', 'ggml-vocab-llama.gguf', 'lora-x-f16.gguf', 'x-mmproj.gguf'])
      expect(recognize([{ name, sizeBytes: 1 }]).entries[0]).toMatchObject({ kind: 'weights.gguf', name })
  })

  test('parts of a model alone are no model, and the error says what they are', () => {
    for (const [name, what] of [
      ['mmproj-x-f16.gguf', 'projector'],
      ['dflash-x-q8_0.gguf', 'draft head'],
      ['x-imatrix.gguf', 'importance matrix'],
      ['ggml-vocab-llama.gguf', 'vocabulary']
    ] as const) {
      let caught: unknown
      try {
        requireImportable(recognize([{ name, sizeBytes: 1 }], 'normalized'))
      } catch (error) {
        caught = error
      }
      expect(caught).toBeInstanceOf(ClassifyError)
      expect(caught).toMatchObject({ code: 'E_NOT_IMPORTABLE', details: { name, reason: 'part' } })
      expect((caught as Error).message).toContain(what)
    }
    expect(isImportable(recognize([{ name: 'lora-x-f16.gguf', sizeBytes: 1 }], 'normalized'))).toBe(true)
  })
})

describe('the quant of a GGUF', () => {
  test('the word of the name wins over the header; without one the header decides, for all parts of a set', () => {
    const heads = new Map([
      ['a-Q8_0.gguf', MODEL],
      ['B.gguf', MODEL],
      ['C-00001-of-00002.gguf', MODEL]
    ])
    const names = ['a-Q8_0.gguf', 'B.gguf', 'C-00001-of-00002.gguf', 'C-00002-of-00002.gguf']
    expect([...normalizedNames(names, heads).values()].sort()).toEqual([
      'a-q8_0.gguf',
      'b-q4_k_m.gguf',
      'c-q4_k_m-00001-of-00002.gguf',
      'c-q4_k_m-00002-of-00002.gguf'
    ])
  })

  test('headers are asked for where names settle nothing, once a set, those without a quant first', () => {
    const settled = ['x-Q4_K_M-00001-of-00002.gguf', 'x-Q4_K_M-00002-of-00002.gguf', 'x-Q8_0.gguf', 'mmproj-F16.gguf']
    expect(headsToRead([...settled, 'config.json'], 9)).toEqual([])
    expect(headsToRead([...settled, 'x-LoRA-F16.gguf', 'plain.gguf'], 9)).toEqual([
      { name: 'plain.gguf', quant: true },
      ...['x-LoRA-F16.gguf', 'x-Q4_K_M-00001-of-00002.gguf', 'x-Q8_0.gguf'].map((name) => ({ name, quant: false }))
    ])
    expect(headsToRead([...settled, 'plain.gguf'], 1)).toEqual([{ name: 'plain.gguf', quant: true }])
  })
})

describe('models of one quant', () => {
  const quantsOf = (names: readonly string[]): (string | undefined)[] =>
    recognize(
      [...normalizedNames(names).values()].map((name) => ({ name, sizeBytes: 1 })),
      'normalized'
    ).entries.map(({ quant }) => quant)

  test.each<[names: string[], quants: string[]]>([
    [
      ['X-APEX-I-Compact.gguf', 'X-APEX-I-Quality.gguf'],
      ['raw.compact', 'raw.quality']
    ],
    [
      ['Qwen3-8B-Q4_K_M.gguf', 'Qwen3-14B-Q4_K_M.gguf'],
      ['q4_k_m.qwen3-14b', 'q4_k_m.qwen3-8b']
    ],
    [
      ['a/x-Q8_0.gguf', 'b/x-Q8_0.gguf'],
      ['q8_0.a-x', 'q8_0.b-x']
    ],
    [
      ['x-Q8_0.gguf', 'x-MTP-Q8_0.gguf'],
      ['q8_0.x-mtp', 'q8_0.x']
    ],
    [
      ['Q8_0/x-00001-of-00002.gguf', 'Q8_0/x-00002-of-00002.gguf', 'x-Q4_0.gguf'],
      ['q8_0', 'q8_0', 'q4_0']
    ]
  ])('%j', (names, quants) => {
    expect(quantsOf(names)).toEqual(quants)
  })
})

describe('reading the header', () => {
  const asked: number[] = []
  const read = (bytes: Uint8Array, quant: boolean) => {
    asked.length = 0
    return readGgufIdentity(
      async (offset, length) => {
        asked.push(offset + length)
        return bytes.subarray(offset, offset + length)
      },
      bytes.length,
      { quant }
    )
  }
  const words = Array.from({ length: 40_000 }, (_, i) => `token ${i}`)

  test('role and file type, wherever the file type stands', async () => {
    const early = ggufBytes(
      { 'general.architecture': 'llama', 'general.type': 'model', 'general.file_type': 15 },
      [[12, 100]],
      words
    )
    expect(await read(early, true)).toEqual({
      format: 'gguf',
      architecture: 'llama',
      type: 'model',
      tensorCount: 1,
      quant: 'q4_k_m'
    })
    const late = ggufBytes({ 'general.architecture': 'llama' }, [[8, 100]], words, { 'general.file_type': 7 })
    expect(await read(late, true)).toMatchObject({ quant: 'q8_0' })
    expect(await read(late, false)).toEqual({ format: 'gguf', architecture: 'llama', tensorCount: 1 })
    expect(asked).toEqual([64 * 1024])
  })

  test('without a file type the type of most weights decides', async () => {
    const bytes = ggufBytes(
      { 'general.architecture': 'llama' },
      [
        [0, 10],
        [12, 1000],
        [14, 100]
      ],
      words
    )
    expect(await read(bytes, true)).toMatchObject({ quant: 'q4_k_m' })
  })

  test('a file type that nobody knows, a cut file and another file are values', async () => {
    expect(await read(ggufBytes({ 'general.architecture': 'x', 'general.file_type': 999 }, []), true)).toEqual({
      format: 'gguf',
      architecture: 'x',
      tensorCount: 0
    })
    const cut = ggufBytes({ 'general.architecture': 'llama' }, [[12, 100]], words).subarray(0, 90_000)
    expect(await read(cut, true)).toMatchObject({ format: 'unreadable' })
    expect(await read(new TextEncoder().encode('<html>'), true)).toMatchObject({
      format: 'unreadable',
      looksLike: 'an HTML page'
    })
  })
})
