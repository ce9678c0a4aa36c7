import type { ImportPlan } from '@svc/client'
import { expect, test } from 'vitest'
import type { Machine } from '../src/hub/machine.ts'
import { adviceOf, artifactTable, fitsOf } from '../src/hub/plan-table.ts'

const GIB = 2 ** 30
const artifact = (quant: string, gib: number, here = 0) => ({
  quant,
  files: 2,
  bytes: gib * GIB,
  bytesPresent: here * GIB,
  weightsBytes: gib * GIB
})
/** Three quants that need one GiB besides their weights. */
const plan = {
  artifacts: [artifact('q4', 4), artifact('q8', 8), artifact('bf16', 16)],
  memory: { contextTokens: 8192, cacheBytes: GIB / 2, computeBytes: GIB / 2 }
} as unknown as ImportPlan
const machine = (ram: number, vram = 0, disk: number | undefined = 1000): Machine => ({
  ramBytes: ram * GIB,
  vramBytes: vram * GIB,
  diskBytes: disk === undefined ? undefined : disk * GIB
})

test.each([
  ['enough for all', machine(64), ['fits', 'fits', 'fits'], 'bf16'],
  ['memory for one', machine(8), ['fits', 'no', 'no'], 'q4'],
  ['a card that has room for two', machine(4, 12), ['fits', 'fits', 'no'], 'q8'],
  ['card and memory together', machine(8, 12), ['fits', 'fits', 'tight'], 'q8'],
  ['nothing that fits well', machine(6), ['tight', 'no', 'no'], 'q4'],
  ['a full disk', machine(64, 0, 5), ['fits', 'no', 'no'], 'q4'],
  ['no word of the disk', machine(64, 0, undefined), ['fits', 'fits', 'fits'], 'bf16'],
  ['too little for any', machine(1), ['no', 'no', 'no'], 'none']
])('%s', (_, given, fits, best) => {
  expect(fitsOf(plan, given).map(({ fit }) => fit)).toEqual(fits)
  expect(adviceOf(plan, given)).toContain(best)
  expect(artifactTable(plan, given)[1]).toContain(fits[0])
})

test('a model that is here needs no disk', () => {
  const here = { ...plan, artifacts: [artifact('q8', 8, 8)] }
  expect(fitsOf(here, machine(64, 0, 1))).toEqual([{ quant: 'q8', needBytes: 9 * GIB, fit: 'fits' }])
})

test('if the size of the cache is unknown, only weights count, and the advice says why', () => {
  const unknown = { ...plan, memory: { unknown: 'the state of x9 is not known' } }
  expect(fitsOf(unknown, machine(64))[1]).toMatchObject({ needBytes: 8 * GIB })
  expect(adviceOf(unknown, machine(64))).toContain('x9')
})

test('a plan without memory gives no advice', () => {
  const { memory: _, ...bare } = plan
  expect(adviceOf(bare as ImportPlan, machine(64))).toBeUndefined()
  expect(artifactTable(bare as ImportPlan, machine(64))[0]).not.toContain('FIT')
})

test('choices that their quants do not tell are listed as the publisher named them', () => {
  const named = {
    ...plan,
    artifacts: [{ ...artifact('q4_k_m.compact', 4), upstream: 'X-I-Compact.gguf' }, artifact('q8_0', 8)]
  }
  const [head, first, second] = artifactTable(named as unknown as ImportPlan)
  expect(head?.at(-1)).toBe('PUBLISHED AS')
  expect([first?.[0], first?.at(-1)]).toEqual(['  q4_k_m.compact', 'X-I-Compact.gguf'])
  expect(second?.at(-1)).toBe('')
  expect(artifactTable(plan)[0]).not.toContain('PUBLISHED')
})
