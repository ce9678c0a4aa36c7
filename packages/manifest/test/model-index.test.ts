import type { Sha256Digest } from '@svc/ref'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { canonicalBytes } from '../src/canonical.ts'
import { mergeIndex, parseIndex, sealIndex, shrinkIndex } from '../src/model-index.ts'
import type { IndexMember, ModelIndex } from '../src/types.ts'
import { errorOf } from './manifest-error.ts'
import { toBytes, toText, vectors } from './vectors.ts'

const digest = (byte: number): Sha256Digest => `sha256:${byte.toString(16).padStart(2, '0').repeat(32)}` as Sha256Digest
const member = (quant: string, byte = 1): IndexMember => ({
  quant,
  manifest: digest(byte),
  distribution: digest(byte + 1)
})

test.each(vectors.indexes)('vector: $name', ({ members, bytes, digest: expected }) => {
  const sealed = sealIndex(members)
  expect([toText(sealed.bytes), sealed.digest]).toEqual([bytes, expected])
  expect(parseIndex(toBytes(bytes))).toEqual(sealed.document)
})

test.each(vectors.merges)('vector: $name', ({ previous, members, bytes, digest: expected }) => {
  const sealed = mergeIndex(sealIndex(previous).document, members)
  expect([toText(sealed.bytes), sealed.digest]).toEqual([bytes, expected])
})

const quants = fc.uniqueArray(
  fc.constantFrom('raw', 'bf16', 'f16', 'q2_k', 'q4_0', 'q4_k_m', 'q8_0', 'ud-q4_k_m', 'gptq'),
  { minLength: 1 }
)

test('property: any order of members and of imports gives the same index', () => {
  fc.assert(
    fc.property(quants, fc.nat(), (names, cut) => {
      const members = names.map((quant, i) => member(quant, i))
      const sealed = sealIndex(members)
      expect(sealIndex([...members].reverse())).toEqual(sealed)
      const at = cut % (names.length + 1)
      const first = at === 0 ? undefined : sealIndex(members.slice(0, at)).document
      expect(at === names.length ? mergeIndex(first, [members[0]!]) : mergeIndex(first, members.slice(at))).toEqual(
        sealed
      )
    })
  )
})

test('a merge replaces members of the same quant and keeps the rest, unknown fields included', () => {
  const previous = parseIndex(
    canonicalBytes({
      ...sealIndex([member('raw')]).document,
      members: [{ ...member('q4_0'), note: 'kept' }, member('raw')],
      more: 1
    })
  )
  expect(mergeIndex(previous, [member('raw', 9), member('bf16')]).document).toEqual({
    schemaVersion: 1,
    artifactType: 'model-index',
    members: [member('bf16'), { ...member('q4_0'), note: 'kept' }, member('raw', 9)],
    more: 1
  })
})

test('an index keeps its unknown fields when members are removed', () => {
  const previous = parseIndex(
    canonicalBytes({
      ...sealIndex([member('raw')]).document,
      members: [member('bf16'), { ...member('q4_0'), note: 'kept' }],
      more: 1
    })
  )
  expect(shrinkIndex(previous, ({ quant }) => quant === 'bf16').document).toEqual({
    schemaVersion: 1,
    artifactType: 'model-index',
    members: [{ ...member('q4_0'), note: 'kept' }],
    more: 1
  })
  expect(errorOf(() => shrinkIndex(previous, () => true))).toBe('E_INVALID members-empty')
})

describe('refused', () => {
  const cases: readonly [string, readonly unknown[]][] = [
    ['members-empty', []],
    ['quant', [member('Q4_K_M')]],
    ['quant', [member('latest')]],
    ['quant-duplicate', [member('raw'), member('raw', 3)]],
    ['field', [{ ...member('raw'), manifest: 'x' }]],
    ['field', [{ quant: 'raw', manifest: digest(1) }]],
    ['field', [{ ...member('raw'), quant: 1 }]]
  ]
  test.each(cases)('%s: %j', (reason, members) => {
    expect(errorOf(() => sealIndex(members as IndexMember[]))).toBe(`E_INVALID ${reason}`)
    const document = { schemaVersion: 1, artifactType: 'model-index', members }
    expect(errorOf(() => parseIndex(canonicalBytes(document)))).toBe(`E_CORRUPTION ${reason}`)
    expect(
      errorOf(() => mergeIndex({ ...document, members: [] } as unknown as ModelIndex, members as IndexMember[]))
    ).toBe(`E_INVALID ${reason}`)
  })

  test('when read', () => {
    const document = sealIndex([member('bf16'), member('raw')]).document
    const read = (change: object): string => errorOf(() => parseIndex(canonicalBytes({ ...document, ...change })))
    expect(read({ members: [...document.members].reverse() })).toBe('E_CORRUPTION member-order')
    expect(read({ schemaVersion: '1' })).toBe('E_CORRUPTION field')
    expect(read({ artifactType: 'model' })).toBe('E_CORRUPTION field')
    expect(read({ members: {} })).toBe('E_CORRUPTION field')
    expect(read({ members: ['raw'] })).toBe('E_CORRUPTION field')
  })
})
