import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  ClassifyError,
  isImportable,
  type ManifestEntry,
  outcomeOf,
  type Recognition,
  recognize,
  requireImportable,
  TABLE
} from '../src/index.ts'
import { readVectors } from './vectors.ts'

interface NameRow {
  readonly from: string
  readonly name: string
  readonly is: string
  readonly reason?: string
  readonly entry?: string
  readonly quant?: string
  readonly part?: number
  readonly role?: string
  readonly variant?: string
}
interface Vectors {
  readonly names: readonly NameRow[]
  readonly listings: readonly {
    title: string
    files: string[]
    entries: string[]
    skipped: string[]
    warnings: string[]
  }[]
  readonly refused: readonly { files: string[]; name: string; reason: string }[]
  readonly accepted: readonly string[]
}
const vectors = readVectors<Vectors>('recognition')
const listed = (names: readonly string[]) => names.map((name, i) => ({ name, sizeBytes: 10 + i }))

describe('one file by its name', () => {
  test.each(vectors.names)('$from: $name', (row) => {
    const { uses, entries, config, licences, skipped } = recognize(listed([row.name]))
    const use = uses.get(row.name)!
    if (row.is === 'skip') {
      expect(use).toEqual({ use: 'skip', reason: row.reason })
      expect(skipped).toEqual([{ name: row.name, reason: row.reason }])
      expect(entries).toEqual([])
    } else if (row.is === 'member') {
      expect(use).toEqual({ use: 'member', entry: row.entry })
      expect(entries.map((entry) => entry.content)).toEqual([
        { from: 'tar', members: [{ name: row.name, from: row.name, sizeBytes: 10 }] }
      ])
    } else if (row.is === 'config') {
      expect(use).toEqual({ use: 'config' })
      expect(config).toEqual({ name: row.name, sizeBytes: 10 })
    } else if (row.is === 'licence' || row.is === 'notice') {
      expect(use).toEqual({ use: 'licence', detect: row.is === 'licence' })
      expect(licences).toEqual([{ name: row.name, sizeBytes: 10, detect: row.is === 'licence' }])
    } else {
      expect(use).toEqual({ use: 'entry', entry: row.name })
      expect(entries).toHaveLength(1)
      const { kind, name, sizeBytes, quant, part, role, variant } = entries[0]!
      expect({ kind, name, sizeBytes, quant, part, role, variant }).toEqual({
        kind: row.is,
        name: row.name,
        sizeBytes: 10,
        quant: row.quant,
        part: row.part,
        role: row.role,
        variant: row.variant
      })
    }
  })

  test('every row of the table is hit by some name', () => {
    const hit = new Set(vectors.names.map(({ name }) => outcomeOf(name)))
    expect(TABLE.filter(({ becomes }) => !hit.has(becomes)).map(({ id }) => id)).toEqual([])
  })
})

const spell = ({ kind, name, content }: ManifestEntry): string =>
  `${kind} ${name}${content.from === 'tar' ? ` = ${content.members.map((member) => member.name).join(' + ')}` : ''}`

describe('a listing', () => {
  test.each(vectors.listings)('$title', ({ files, entries, skipped, warnings }) => {
    const result = recognize(listed(files))
    expect(result.entries.map(spell)).toEqual(entries)
    expect(result.skipped.map(({ name }) => name)).toEqual(skipped)
    expect(result.warnings.map(({ code }) => code)).toEqual(warnings)
  })

  test.each(vectors.refused)('refuses $reason', ({ files, name, reason }) => {
    for (const order of [files, files.toReversed()]) {
      const refusal = caught(() => recognize(listed(order)))
      expect(refusal.code).toBe('E_BAD_NAME')
      expect(refusal.details).toEqual({ name, reason })
    }
  })

  test('accepts odd but harmless names', () => {
    expect([...recognize(listed(vectors.accepted)).uses.keys()].sort()).toEqual([...vectors.accepted].sort())
  })

  test('refuses invalid sizes', () => {
    for (const sizeBytes of [-1, 1.5, Number.NaN, 2 ** 53])
      expect(caught(() => recognize([{ name: 'x.gguf', sizeBytes }])).details.reason).toBe('size')
  })

  test('refuses a tokenizer that does not fit into a tar', () => {
    expect(caught(() => recognize(listed([`${'a'.repeat(200)}/tokenizer.json`]))).code).toBe('E_TAR_LIMIT')
    expect(caught(() => recognize([{ name: 'vocab.txt', sizeBytes: 2 ** 33 }])).code).toBe('E_TAR_LIMIT')
  })

  test('a listing without weights and adapters is refused', () => {
    for (const [files, importable] of [
      [['x.gguf'], true],
      [['x.safetensors'], true],
      [['adapter_config.json', 'adapter_model.safetensors'], true],
      [['adapter_model.safetensors'], false],
      [['tokenizer.json', 'mmproj-f16.gguf', 'imatrix.dat', 'config.json'], false],
      [[], false]
    ] as const) {
      const recognition = recognize(listed(files))
      expect(isImportable(recognition)).toBe(importable)
      if (!importable) expect(caught(() => requireImportable(recognition)).code).toBe('E_NOT_IMPORTABLE')
    }
  })

  test.each([
    ['pickle', ['config.json', 'pytorch_model.bin', 'onnx/model.onnx', 'training_args.bin']],
    ['ggml', ['README.md', 'ggml-base.en.bin', 'ggml-base.en-encoder.mlmodelc.zip']],
    ['onnx', ['onnx/model_quantized.onnx', 'tf_model.h5']],
    ['other-framework', ['saved_model.pb']],
    [undefined, ['training_args.bin', 'config.json']]
  ])('weights in a foreign format are recognized: %s', (reason, files) => {
    expect(caught(() => requireImportable(recognize(listed(files)))).details.reason).toBe(reason)
  })
})

const names = [...new Set([...vectors.names.map((row) => row.name), ...vectors.listings.flatMap((row) => row.files)])]
const anySegment = fc.string({ minLength: 1, maxLength: 8, unit: 'grapheme' })
const anyListing = fc
  .uniqueArray(
    fc.oneof(
      fc.constantFrom(...names),
      fc.array(anySegment, { minLength: 1, maxLength: 3 }).map((path) => `${path.join('/')}.gguf`)
    ),
    { maxLength: 40 }
  )
  .map(listed)

describe('properties', () => {
  test('the order of the listing does not matter', () => {
    fc.assert(
      fc.property(
        anyListing.chain((files) =>
          fc.tuple(fc.constant(files), fc.shuffledSubarray(files, { minLength: files.length }))
        ),
        ([files, shuffled]) => {
          expect(outcome(shuffled)).toEqual(outcome(files))
        }
      )
    )
  })

  test('every file has exactly one use, and the entries add up to their files', () => {
    fc.assert(
      fc.property(anyListing, (files) => {
        const result = outcome(files)
        if (result instanceof ClassifyError) return
        expect([...result.uses.keys()].sort()).toEqual(files.map(({ name }) => name).sort())
        const used = result.entries.flatMap(({ content }) =>
          content.from === 'file' ? [content.name] : content.members.map((member) => member.from)
        )
        const inEntries = [...result.uses]
          .filter(([, use]) => use.use === 'entry' || use.use === 'member')
          .map(([name]) => name)
        expect(used.sort()).toEqual(inEntries.sort())
        expect(new Set(result.entries.map(({ name }) => name)).size).toBe(result.entries.length)
        for (const { name } of result.entries) expect(name.split('/')[0]).not.toBe('manifest')
      })
    )
  })
})

function caught(run: () => unknown): ClassifyError {
  try {
    run()
  } catch (error) {
    if (error instanceof ClassifyError) return error
    throw error
  }
  throw new Error('nothing was thrown')
}

function outcome(files: Parameters<typeof recognize>[0]): Recognition | ClassifyError {
  try {
    return recognize(files)
  } catch (error) {
    if (error instanceof ClassifyError) return error
    throw error
  }
}
