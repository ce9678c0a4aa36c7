import { compareText, isPlainQuant } from '@svc/ref'
import { ClassifyError } from './errors.ts'
import { DEFAULT_FORM } from './forms.ts'
import { folderOf } from './names.ts'
import { nearestOf, PRECISIONS } from './nearest.ts'
import { normalizedName } from './normalize.ts'
import { goesWithAny } from './opaque.ts'
import { projectorVariant, RAW } from './quant.ts'
import type { ManifestEntry, NamesRead, Recognition, Warning } from './types.ts'

/** The wanted subset of a listing (spec add.6); an absent member excludes nothing. */
export interface FileSelection {
  /** Compared in lower case. */
  readonly quants?: readonly string[] | undefined
  /** A test for the names of weights and aux files; see `globTest`. */
  readonly files?: ((name: string) => boolean) | undefined
  readonly aux?: AuxSelection | undefined
}

/**
 * Which projectors, draft heads, adapters and importance matrices come along (spec add.50). In a list, compared in lower case:
 * `one` for the nearest projector and the nearest draft head, `mmproj` and `draft` for one of them; the precisions of projectors
 * (`f16`), those of draft heads as `draft:q8_0`; `imatrix`, `lora`.
 */
export type AuxSelection = 'all' | 'none' | readonly string[]

/** True for a file that has weights of its own. */
export const isWeights = ({ kind }: { readonly kind: string }): boolean =>
  kind === 'weights.gguf' || kind === 'weights.safetensors'

/**
 * The quant under which weights are chosen and kept. With normalized names, a GGUF and safetensors of one quant, which are the same
 * model twice, are two choices (spec rec.27).
 */
export function memberQuants(
  { names, entries }: Pick<Recognition, 'names' | 'entries'>,
  safetensorsQuant: string
): (entry: Pick<ManifestEntry, 'kind' | 'quant'>) => string {
  const areApart = names === 'normalized' && entries.some(({ kind }) => kind === 'weights.safetensors')
  return ({ kind, quant = safetensorsQuant }) =>
    areApart && kind === 'weights.gguf' && quant === safetensorsQuant ? `${quant}.gguf` : quant
}

/** True for adapters, in a tar of their own or in GGUF. */
export const isAdapter = ({ kind, role }: { readonly kind: string; readonly role?: string }): boolean =>
  kind === 'adapter' || (kind === 'weights.aux' && role === 'adapter')

/** True when the choice needs the quant of the safetensors, which names alone do not tell. */
export function needsSafetensorsQuant({ names, entries }: Recognition, { quants, aux }: FileSelection): boolean {
  const has = (kind: ManifestEntry['kind']): boolean => entries.some((entry) => entry.kind === kind)
  if (!has('weights.safetensors')) return false
  // whose quants tell which choice each GGUF is, and what is nearest
  return (
    quants !== undefined ||
    (names === 'normalized' && (has('weights.gguf') || (aux !== undefined && entries.some(isSidecar))))
  )
}

/**
 * The quants that an import of a recognized listing produces, sorted. `safetensorsQuant` is that of its safetensors,
 * see the function of that name; undefined leaves them out. Other forms of a model come only where they are chosen.
 */
export const quantsOf = (recognition: Recognition, safetensorsQuant: string | undefined): string[] =>
  quantsIn(recognition, safetensorsQuant, (form) => form === DEFAULT_FORM)

function quantsIn(
  recognition: Recognition,
  safetensorsQuant: string | undefined,
  isForm: (form: string) => boolean
): string[] {
  const weights = recognition.entries.filter(isWeights)
  if (weights.length === 0) return recognition.entries.length > 0 ? [RAW] : []
  const quantOf = memberQuants(recognition, safetensorsQuant ?? '')
  const quants = weights.flatMap((entry) =>
    entry.forms === undefined
      ? [quantOf(entry)]
      : entry.forms.filter(isForm).map((form) => formQuant(form, safetensorsQuant ?? ''))
  )
  return [...new Set(quants)].filter((quant) => quant !== '' && !quant.startsWith('.')).sort(compareText)
}

/** The quant under which a form of a listing's safetensors is kept (spec rec.30). */
export function formQuant(form: string, safetensorsQuant: string): string {
  if (form === DEFAULT_FORM) return safetensorsQuant
  return isPlainQuant(form) ? form : `${safetensorsQuant}.${form}`
}

/** What a choice leaves of a listing. */
export interface Chosen {
  /** The names of the files that it excludes, sorted. */
  readonly left: readonly string[]
  /** Of these, those of other forms of what comes, which were not asked for, each with one of its forms. */
  readonly otherForms: ReadonlyMap<string, string>
  /**
   * The other entries, each with the quant that it has among all of the listing, the quants that it goes with, and the forms
   * that were chosen.
   */
  readonly entries: readonly ManifestEntry[]
  readonly warnings: readonly Warning[]
}

/**
 * What a choice leaves: without weights of other quants, other forms that it does not name, and weights and aux files that `files`
 * or `aux` rejects. If only `quants` is given, an import of the rest produces byte for byte the same manifests as an import of
 * everything (spec add.7).
 * @throws ClassifyError `E_NO_MEMBER` for a quant, or a word of `aux`, that the listing does not have (`details.candidates` are those it
 *   has); `E_NOT_IMPORTABLE` when no weights are left
 */
export function chosenOf(
  recognition: Recognition,
  choice: FileSelection,
  safetensorsQuant: string | undefined
): Chosen {
  if (recognition.names === 'opaque') return opaqueChosen(recognition, choice)
  const weights = recognition.entries.filter(isWeights)
  const wanted = choice.quants && new Set(choice.quants.map((quant) => quant.toLowerCase()))
  const forms = formsIn(weights)
  if (wanted !== undefined)
    requireQuants(
      wanted,
      quantsIn(recognition, safetensorsQuant, () => true),
      forms
    )
  const quantOf = memberQuants(recognition, safetensorsQuant ?? '')
  // the same precision twice: the default stands for both
  const isForm = (form: string): boolean => {
    if (wanted === undefined) return form === DEFAULT_FORM || choice.files !== undefined
    return form !== safetensorsQuant && (wanted.has(formQuant(form, safetensorsQuant ?? '')) || wanted.has(form))
  }
  const rest = recognition.entries.flatMap((entry): ManifestEntry[] => {
    if (choice.files !== undefined && (isWeights(entry) || entry.kind === 'weights.aux') && !choice.files(entry.name))
      return []
    if (entry.forms !== undefined) {
      const chosen = entry.forms.filter(isForm)
      return chosen.length === 0 ? [] : [{ ...entry, forms: chosen }]
    }
    return wanted === undefined || !isWeights(entry) || wanted.has(quantOf(entry)) ? [entry] : []
  })
  if (weights.length > 0 && !rest.some(isWeights))
    throw new ClassifyError(
      'E_NOT_IMPORTABLE',
      `none of the ${weights.length} weights is left: the patterns match none of them, such as ${JSON.stringify(weights[0]!.name)}`
    )
  const goesWith = auxChosen(recognition.names, rest, choice.aux ?? 'all', quantOf)
  const entries = rest.flatMap((entry): ManifestEntry[] => {
    if (entry.kind === 'weights.gguf') return [{ ...entry, quant: quantOf(entry) }]
    const quants = goesWith.get(entry) ?? 'all'
    if (quants === 'all') return [entry]
    return quants.length === 0 ? [] : [{ ...entry, goesWith: quants }]
  })
  const kept = new Set(entries.map(({ name }) => name))
  const left = recognition.entries.filter(({ name }) => !kept.has(name))
  const others =
    wanted === undefined && choice.files === undefined ? left.filter(({ forms }) => forms !== undefined) : []
  return {
    left: left.map(({ name }) => name).sort(compareText),
    otherForms: new Map(others.map(({ name, forms }) => [name, forms![0]!])),
    entries,
    warnings: otherFormWarnings(others)
  }
}

/** What globs leave of files that are taken as they are: what they match, and what goes with any of them. */
function opaqueChosen({ entries }: Recognition, { files: isChosen = () => true }: FileSelection): Chosen {
  const kept = entries.filter(({ name }) => isChosen(name) || goesWithAny(name))
  if (!kept.some(({ name }) => isChosen(name)))
    throw new ClassifyError(
      'E_NOT_IMPORTABLE',
      `none of the ${entries.length} files is left: the patterns match none of them, such as ${JSON.stringify(entries[0]?.name ?? '')}`
    )
  const here = new Set(kept)
  const left = entries.filter((entry) => !here.has(entry)).map(({ name }) => name)
  return { left, otherForms: new Map(), entries: kept, warnings: [] }
}

const formsIn = (entries: readonly ManifestEntry[]): ReadonlySet<string> =>
  new Set(entries.flatMap(({ forms = [] }) => forms).filter((form) => form !== DEFAULT_FORM))

/** Says what is left out, and how it comes. */
const otherFormWarnings = (entries: readonly ManifestEntry[]): Warning[] =>
  [...formsIn(entries)].sort(compareText).map((form) => {
    const own = entries.filter(({ forms = [] }) => forms.includes(form))
    const bytes = own.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
    const names = own.map(({ name }) => name)
    const what = `${some(names, 3)} (${bytes} bytes)`
    return {
      code: 'other-form',
      names,
      message: `left out, since it is the same model in another form: ${what}; the quant ${JSON.stringify(form)} chooses it`
    }
  })

function requireQuants(wanted: ReadonlySet<string>, there: readonly string[], forms: ReadonlySet<string>): void {
  const absent = [...wanted].find((quant) => !there.includes(quant) && !forms.has(quant))
  if (absent === undefined) return
  const message = `there is no quant ${JSON.stringify(absent.slice(0, 80))}; there is ${some(there, 12)}`
  throw new ClassifyError('E_NO_MEMBER', message, { candidates: there })
}

/** True for what stands beside weights and can be chosen. */
const isSidecar = ({ kind, role }: ManifestEntry): boolean =>
  kind === 'weights.aux' &&
  (role === 'vision-projector' || role === 'imatrix' || role === 'draft' || role === 'adapter')

type GoesWith = 'all' | readonly string[]

/** The quants that each of the sidecars goes with; those that `aux` does not want go with none. */
function auxChosen(
  names: NamesRead,
  entries: readonly ManifestEntry[],
  aux: AuxSelection,
  quantOf: (entry: ManifestEntry) => string
): ReadonlyMap<ManifestEntry, GoesWith> {
  const weights = entries.filter(isWeights)
  // adapters alone are what is imported
  const there = entries.filter((entry) => isSidecar(entry) && (weights.length > 0 || !isAdapter(entry)))
  if (aux === 'all') return new Map()
  if (aux === 'none') return new Map(there.map((entry) => [entry, []]))
  const words = new Map(there.map((entry) => [entry, auxWord(entry)]))
  const wanted = new Set(aux.map((word) => word.toLowerCase()))
  requireWords(wanted, new Set(words.values()))
  const nearest = names === 'normalized' ? nearestBeside(there, weights, wanted, quantOf) : bestInFolders(words, wanted)
  return new Map(
    there.map((entry) => [entry, wanted.has(words.get(entry)!) ? 'all' : (nearest.get(entry) ?? [])] as const)
  )
}

/** Words that ask for what is there, whatever there is. */
const NEAREST: Readonly<Record<string, readonly string[]>> = {
  one: ['vision-projector', 'draft'],
  mmproj: ['vision-projector'],
  draft: ['draft']
}

function requireWords(wanted: ReadonlySet<string>, known: ReadonlySet<string>): void {
  const absent = [...wanted].find((word) => NEAREST[word] === undefined && !known.has(word))
  if (absent === undefined) return
  const candidates = [...known].filter((word) => word !== '').sort(compareText)
  const message = `there is no ${JSON.stringify(absent.slice(0, 80))} beside the weights; there is ${some(candidates, 12) || 'nothing'}`
  throw new ClassifyError('E_NO_MEMBER', message, { candidates })
}

/** Of each wanted role, the one nearest to each quant's weights. */
function nearestBeside(
  there: readonly ManifestEntry[],
  weights: readonly ManifestEntry[],
  wanted: ReadonlySet<string>,
  quantOf: (entry: ManifestEntry) => string
): ReadonlyMap<ManifestEntry, GoesWith> {
  const result = new Map<ManifestEntry, string[]>()
  const roles = new Set([...wanted].flatMap((word) => NEAREST[word] ?? []))
  for (const [quant, [first]] of Map.groupBy(weights, quantOf))
    for (const role of roles) {
      const candidates = there.filter((entry) => entry.role === role)
      const nearest = nearestOf(candidates, first!, quant)
      if (nearest !== undefined) result.set(nearest, [...(result.get(nearest) ?? []), quant])
    }
  return result
}

/** With upstream names: all projectors of the best precision in each folder. */
function bestInFolders(
  words: ReadonlyMap<ManifestEntry, string>,
  wanted: ReadonlySet<string>
): ReadonlyMap<ManifestEntry, GoesWith> {
  const projectors = [...words].filter(([{ role }]) => role === 'vision-projector')
  if (!wanted.has('one') && !wanted.has('mmproj')) return new Map()
  const best = new Map<string, string>()
  for (const [{ name }, word] of projectors) {
    const other = best.get(folderOf(name))
    if (other === undefined || rankOf(word) < rankOf(other)) best.set(folderOf(name), word)
  }
  return new Map(
    projectors.filter(([{ name }, word]) => best.get(folderOf(name)) === word).map(([entry]) => [entry, 'all'] as const)
  )
}

/** The word of `aux` that chooses a file, however its name is spelled; empty for a projector that names no precision. */
function auxWord({ role, name, variant }: ManifestEntry): string {
  if (role === 'imatrix') return role
  if (role === 'adapter') return 'lora'
  if (role === 'draft') return `draft:${variant ?? ''}`
  return projectorVariant(normalizedName(name)) ?? ''
}

function rankOf(word: string): number {
  const at = PRECISIONS.indexOf(word)
  return at < 0 ? PRECISIONS.length : at
}

/** The first `most` names of a list, and how many more there are. */
export const some = (names: readonly string[], most: number): string =>
  names.slice(0, most).join(', ') + (names.length > most ? ` and ${names.length - most} more` : '')
