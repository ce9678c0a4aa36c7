import { compareText, unqualified } from '@svc/ref'
import { folderOf } from './names.ts'
import { ggufModelName } from './quant.ts'
import type { ManifestEntry } from './types.ts'

/** The precisions of projectors in the order in which runtimes want them; any other comes after them. */
export const PRECISIONS: readonly string[] = ['f16', 'bf16', 'f32']

const FULL_BITS: Readonly<Record<string, number>> = { f16: 16, bf16: 16, fp16: 16, f32: 32, fp32: 32 }

/** About how many bits a weight of a quant has, as its word says it. */
function bitsOf(quant: string): number | undefined {
  const word = unqualified(quant).replace(/^ud-/, '')
  const digits = /^(?:[a-z]+-)?(?:[a-z]*?)([0-9]+(?:\.[0-9]+)?)/.exec(word)?.[1]
  return FULL_BITS[word] ?? (digits === undefined ? undefined : Number(digits))
}

/**
 * Of the files of one role, the one that belongs beside weights (spec rec.28): in their folder or above it, then with the longest
 * start of a name in common, then with the nearest number of bits, of which the same quant comes first.
 */
export function nearestOf(
  candidates: readonly ManifestEntry[],
  weights: Pick<ManifestEntry, 'name'>,
  quant: string
): ManifestEntry | undefined {
  const model = ggufModelName(weights.name)
  const bits = bitsOf(quant) ?? FULL_BITS.f16!
  const costs = candidates.map((entry) => {
    const word = entry.variant ?? ''
    const at = PRECISIONS.indexOf(word)
    return {
      entry,
      cost: [
        distance(folderOf(entry.name), folderOf(weights.name)),
        -commonStart(ggufModelName(entry.name).replace(/^[a-z0-9]+-?/, ''), model),
        word === unqualified(quant) ? -1 : Math.abs((bitsOf(word) ?? FULL_BITS.f32!) - bits),
        at < 0 ? PRECISIONS.length : at
      ]
    }
  })
  const [best] = costs.sort((a, b) => compareCosts(a.cost, b.cost) || compareText(a.entry.name, b.entry.name))
  return best?.entry
}

const ELSEWHERE = 1_000

function distance(from: string, to: string): number {
  if (!to.startsWith(from)) return ELSEWHERE
  return to.slice(from.length).split('/').length - 1
}

function commonStart(a: string, b: string): number {
  let length = 0
  while (length < a.length && a[length] === b[length]) length++
  return length
}

function compareCosts(a: readonly number[], b: readonly number[]): number {
  for (const [i, cost] of a.entries()) if (cost !== b[i]) return cost - b[i]!
  return 0
}
