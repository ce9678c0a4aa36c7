import { describe, expect, test } from 'vitest'
import { type ManifestEntry, normalizedNames, recognize } from '../src/index.ts'
import { readVectors } from './vectors.ts'

const { listings } = readVectors<{ listings: [name: string, label?: string][][] }>('hub-names')

/** Labels that are not the quant, and why. */
const OTHER_QUANTS: Readonly<Record<string, readonly [quant: string, why: string]>> = {
  'Ternary-Bonsai-27B-PQ2_0.gguf': ['pq2_0', 'the label leaves out the P, and the type is another one'],
  'Ternary-Bonsai-8B-PQ2_0.gguf': ['pq2_0', 'the label leaves out the P, and the type is another one'],
  'Ternary-Bonsai-8B-Q2_0_g64.gguf': ['q2_0_g64', 'the label cuts the group size; Q2_0 is beside it'],
  'DeepSeek-V4-Flash-Q4KExperts-F16HC-F16Compressor-F16Indexer-Q8Attn-Q8Shared-Q8Out-chat-v2.gguf': [
    'raw',
    'the label names the type of one tensor among many; the header decides'
  ]
}

interface Read {
  readonly name: string
  readonly label: string | undefined
  readonly entry: ManifestEntry | undefined
}

/** What an import with normalized names makes of each GGUF of a listing, by the names alone. */
function readListing(listing: readonly (readonly [string, string?])[]): Read[] {
  const names = normalizedNames(listing.map(([name]) => name))
  const { entries } = recognize(
    [...names.values()].map((name) => ({ name, sizeBytes: 1 })),
    'normalized'
  )
  const byName = new Map(entries.map((entry) => [entry.name, entry]))
  return listing
    .filter(([name]) => name.endsWith('.gguf'))
    .map(([name, label]) => ({ name, label, entry: byName.get(names.get(name)!) }))
}

const all = listings.map(readListing)
const files = all.flat()
const labelled = files.filter(({ label }) => label !== undefined)
const named = (pattern: RegExp): Read[] => files.filter(({ name }) => pattern.test(name))
const rolesOf = (reads: readonly Read[]): Set<string | undefined> => new Set(reads.map(({ entry }) => entry?.role))

describe('names of public repositories', () => {
  test('at least 99.5 % have the quant that the hub reads, and the rest are known', () => {
    const others = labelled.filter(
      ({ label, entry }) => (entry?.variant ?? entry?.quant?.split('.')[0]) !== label!.toLowerCase()
    )
    expect(Object.fromEntries(others.map(({ name, entry }) => [name, entry?.quant?.split('.')[0]]))).toEqual(
      Object.fromEntries(Object.entries(OTHER_QUANTS).map(([name, [quant]]) => [name, quant]))
    )
    expect(labelled.length).toBeGreaterThan(700)
    expect(others.length / labelled.length).toBeLessThanOrEqual(0.006)
  })

  test('projectors and draft heads are none of the models, and no model is one of them or an importance matrix', () => {
    expect(rolesOf(named(/mmproj/i))).toEqual(new Set(['vision-projector']))
    expect(rolesOf(named(/dflash|eagle3|^mtp-/i))).toEqual(new Set(['draft']))
    const models = files.filter(({ name }) => !/mmproj|dflash|eagle3|^mtp-/i.test(name))
    expect(models.length).toBeGreaterThan(600)
    for (const { name, entry } of models) expect(entry?.kind, name).toBe('weights.gguf')
  })

  test('no two models share a choice', () => {
    const shared = all.flatMap((reads) => {
      const weights = reads.flatMap(({ entry }) => (entry?.kind === 'weights.gguf' ? [entry] : []))
      return [...Map.groupBy(weights, ({ quant }) => quant)].filter(
        ([, own]) => new Set(own.map(({ group, name }) => group ?? name)).size > 1
      )
    })
    expect(shared).toEqual([])
  })
})
