import { compareText, isFileQuant } from '@svc/ref'
import { folderOf } from './names.ts'
import { ggufModelName, RAW } from './quant.ts'
import type { ManifestEntry } from './types.ts'

/** A qualifier's length leaves room for the quant before it. */
const MAX_QUALIFIER_CHARS = 64

/**
 * The GGUFs of a listing with normalized names, each with the quant by which it is chosen (spec rec.27): models that share a quant
 * get a qualifier each, from where their names differ. The parts of a set stay together.
 */
export function withOwnQuants(entries: readonly ManifestEntry[]): readonly ManifestEntry[] {
  const quantOf = new Map<ManifestEntry, string>()
  const ggufs = entries.filter(({ kind }) => kind === 'weights.gguf')
  for (const [quant, same] of Map.groupBy(ggufs, ({ quant }) => quant ?? RAW)) {
    const models = Map.groupBy(same, modelOf)
    if (models.size < 2) continue
    const qualifiers = qualifiersOf([...models.keys()])
    for (const [model, own] of models) for (const entry of own) quantOf.set(entry, `${quant}.${qualifiers.get(model)!}`)
  }
  return entries.map((entry) => (quantOf.has(entry) ? { ...entry, quant: quantOf.get(entry)! } : entry))
}

/** The model that a GGUF belongs to, by its path; folders that are named after a quant do not count. */
function modelOf({ name }: ManifestEntry): string {
  const folders = folderOf(name)
    .split('/')
    .filter((part) => part !== '' && !isFileQuant(part.toLowerCase()))
  return [...folders, ggufModelName(name)].join('-').toLowerCase()
}

/** A short word for each name, from the first part in which they differ; each begins with a letter, and no two are equal. */
function qualifiersOf(names: readonly string[]): ReadonlyMap<string, string> {
  const parts = new Map(names.map((name) => [name, name.split(/[^a-z0-9_]+/).filter((part) => part !== '')]))
  const lists = [...parts.values()]
  let common = 0
  while (lists.every((list) => list.length > common + 1 && list[common] === lists[0]![common])) common++
  const taken = new Set<string>()
  const result = new Map<string, string>()
  for (const name of names.toSorted(compareText)) {
    const list = parts.get(name)!
    let from = Math.min(common, Math.max(0, list.length - 1))
    while (from > 0 && !/^[a-z]/.test(list[from]!)) from--
    const word =
      list
        .slice(from)
        .join('-')
        .slice(-MAX_QUALIFIER_CHARS)
        .replace(/^[^a-z]+/, '') || 'model'
    let own = word
    for (let i = 2; taken.has(own); i++) own = `${word}-${i}`
    taken.add(own)
    result.set(name, own)
  }
  return result
}
