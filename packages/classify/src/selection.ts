import { compareText } from '@svc/ref'
import { ClassifyError } from './errors.ts'
import { folderOf } from './names.ts'
import { normalisedName } from './normalise.ts'
import { projectorVariant, RAW } from './quant.ts'
import type { ManifestEntry, Recognition } from './types.ts'

/** The wanted subset of a listing (spec add.6); an absent member excludes nothing. */
export interface FileSelection {
  /** Compared in lower case. */
  readonly quants?: readonly string[] | undefined
  /** A test for the names of weights and aux files; see `globTest`. */
  readonly files?: ((name: string) => boolean) | undefined
  readonly aux?: AuxSelection | undefined
}

/**
 * Which projectors and importance matrices come along. In a list, compared in lower case: the precisions of projectors
 * (`f16`), `imatrix`, and `one` for one projector a folder: f16 before bf16 before f32.
 */
export type AuxSelection = 'all' | 'none' | readonly string[]

/** The precisions of projectors in the order in which runtimes want them; any other comes after them. */
const PROJECTORS = ['f16', 'bf16', 'f32']

/** True for a file that has weights of its own. */
export const isWeights = ({ kind }: { readonly kind: string }): boolean =>
  kind === 'weights.gguf' || kind === 'weights.safetensors'

/** True when {@link notChosen} needs the quant of the safetensors, which names alone do not tell. */
export const needsSafetensorsQuant = ({ entries }: Recognition, { quants }: FileSelection): boolean =>
  quants !== undefined && entries.some(({ kind }) => kind === 'weights.safetensors')

/**
 * The quants that an import of a recognised listing produces, sorted. `safetensorsQuant` is that of its safetensors,
 * see the function of that name; undefined leaves them out.
 */
export function quantsOf({ entries }: Recognition, safetensorsQuant: string | undefined): string[] {
  const weights = entries.filter(isWeights)
  if (weights.length === 0) return entries.length > 0 ? [RAW] : []
  const quants = weights.map((entry) => entry.quant ?? safetensorsQuant).filter((quant) => quant !== undefined)
  return [...new Set(quants)].sort(compareText)
}

/**
 * The files of a listing that a choice excludes, sorted: weights of other quants, and weights and aux files that
 * `files` or `aux` rejects. If only `quants` is given, an import of the rest produces byte for byte the same manifests as an
 * import of everything (spec add.7).
 * @throws ClassifyError `E_NO_MEMBER` for a quant, or a word of `aux`, that the listing does not have (`details.candidates` are those it
 *   has); `E_NOT_IMPORTABLE` when no weights are left
 */
export function notChosen(
  recognition: Recognition,
  choice: FileSelection,
  safetensorsQuant: string | undefined
): readonly string[] {
  const weights = recognition.entries.filter(isWeights)
  const wanted = choice.quants && new Set(choice.quants.map((quant) => quant.toLowerCase()))
  if (wanted !== undefined) requireQuants(wanted, quantsOf(recognition, safetensorsQuant))
  const auxOut = auxNotChosen(recognition.entries, choice)
  const out: string[] = []
  let kept = 0
  for (const entry of recognition.entries) {
    const ofQuant = wanted === undefined || !isWeights(entry) || wanted.has(entry.quant ?? safetensorsQuant ?? '')
    const ofFiles =
      choice.files === undefined || (!isWeights(entry) && entry.kind !== 'weights.aux') || choice.files(entry.name)
    if (!ofQuant || !ofFiles || auxOut.has(entry)) out.push(entry.name)
    else if (isWeights(entry)) kept++
  }
  if (weights.length > 0 && kept === 0)
    throw new ClassifyError(
      'E_NOT_IMPORTABLE',
      `none of the ${weights.length} weights is left: the patterns match none of them, such as ${JSON.stringify(weights[0]!.name)}`
    )
  return out.sort(compareText)
}

function requireQuants(wanted: ReadonlySet<string>, there: readonly string[]): void {
  const absent = [...wanted].find((quant) => !there.includes(quant))
  if (absent === undefined) return
  const message = `there is no quant ${JSON.stringify(absent.slice(0, 80))}; there is ${some(there, 12)}`
  throw new ClassifyError('E_NO_MEMBER', message, { candidates: there })
}

/** Of the projectors and importance matrices that `files` leaves, those that `aux` does not want. */
function auxNotChosen(
  entries: readonly ManifestEntry[],
  { files, aux = 'all' }: FileSelection
): ReadonlySet<ManifestEntry> {
  if (aux === 'all') return new Set()
  const isAux = ({ role, name }: ManifestEntry): boolean =>
    (role === 'vision-projector' || role === 'imatrix') && (files?.(name) ?? true)
  const there = entries.filter(isAux)
  if (aux === 'none') return new Set(there)
  const words = new Map(there.map((entry) => [entry, auxWord(entry)]))
  const known = new Set(words.values())
  const wanted = new Set(aux.map((word) => word.toLowerCase()))
  const absent = [...wanted].find((word) => word !== 'one' && !known.has(word))
  if (absent !== undefined) {
    const candidates = [...known].filter((word) => word !== '').sort(compareText)
    const message = `there is no ${JSON.stringify(absent.slice(0, 80))} beside the weights; there is ${some(candidates, 12) || 'nothing'}`
    throw new ClassifyError('E_NO_MEMBER', message, { candidates })
  }
  const best = wanted.has('one') ? bestProjectors(words) : undefined
  const isWanted = ({ name }: ManifestEntry, word: string): boolean =>
    wanted.has(word) || best?.get(folderOf(name)) === word
  return new Set(there.filter((entry) => !isWanted(entry, words.get(entry)!)))
}

/** The precision of the best projectors in each folder. */
function bestProjectors(words: ReadonlyMap<ManifestEntry, string>): ReadonlyMap<string, string> {
  const best = new Map<string, string>()
  for (const [{ name, role }, word] of words) {
    if (role === 'imatrix') continue
    const other = best.get(folderOf(name))
    if (other === undefined || rankOf(word) < rankOf(other)) best.set(folderOf(name), word)
  }
  return best
}

/** `imatrix`, or the precision of a projector, however its name is spelled; empty for one that names none. */
const auxWord = ({ role, name }: ManifestEntry): string =>
  role === 'imatrix' ? role : (projectorVariant(normalisedName(name)) ?? '')

function rankOf(word: string): number {
  const at = PROJECTORS.indexOf(word)
  return at < 0 ? PROJECTORS.length : at
}

/** The first `most` names of a list, and how many more there are. */
export const some = (names: readonly string[], most: number): string =>
  names.slice(0, most).join(', ') + (names.length > most ? ` and ${names.length - most} more` : '')
