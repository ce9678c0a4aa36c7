import { compareText, isPlainQuant } from '@svc/ref'
import { baseOf, folderOf } from './names.ts'
import { parseShardName } from './shards.ts'
import type { ManifestEntry } from './types.ts'

/** The form that comes by default: the one that loaders take first. */
export const DEFAULT_FORM = ''

/** Precisions as names spell them, with their quants; the first is the one to prefer where none stands without a word. */
const PRECISIONS: readonly (readonly [word: RegExp, quant: string])[] = [
  [/bf16|bfloat16/, 'bf16'],
  [/fp16|f16|float16/, 'f16'],
  [/fp32|f32|float32/, 'f32'],
  [/fp8(?:_?(?:e4m3fn?|e5m2)(?:_scaled)?)?|float8/, 'fp8'],
  [/nvfp4/, 'nvfp4'],
  [/mxfp4/, 'mxfp4']
]
const PRECISION_WORD = new RegExp(
  `(?<![a-z0-9])(?:${PRECISIONS.map(([{ source }]) => source).join('|')})(?:[-_]?scaled)?(?![a-z0-9])`
)

interface SafetensorsName {
  readonly entry: ManifestEntry
  readonly folder: string
  /** Without extension and shard suffix, in lower case. */
  readonly stem: string
}

/**
 * The safetensors of a listing with normalized names, each with the forms of the model that it is part of (spec rec.30): the same
 * model in another layout, as single files beside folders, or in other precisions. A form is named by a precision's quant or by a
 * word; files that every form needs have none.
 */
export function withForms(
  entries: readonly ManifestEntry[],
  isListed: (name: string) => boolean
): readonly ManifestEntry[] {
  const names = entries.filter(({ kind }) => kind === 'weights.safetensors').map(nameOf)
  const forms = new Map<ManifestEntry, readonly string[]>()
  markLayouts(names, forms)
  if (isListed('model_index.json')) markSingleFiles(names, forms)
  markPrecisions(
    names.filter(({ entry }) => !forms.has(entry)),
    forms
  )
  if (![...forms.values()].flat().some((form) => form !== DEFAULT_FORM)) return entries
  const all = [...new Set([DEFAULT_FORM, ...[...forms.values()].flat().filter(isPlainQuant)])].sort(compareText)
  return entries.map((entry) =>
    entry.kind === 'weights.safetensors' ? { ...entry, forms: forms.get(entry) ?? all } : entry
  )
}

function nameOf(entry: ManifestEntry): SafetensorsName {
  const base = baseOf(entry.name).replace(/\.safetensors$/, '')
  return { entry, folder: folderOf(entry.name), stem: (parseShardName(base)?.base ?? base).toLowerCase() }
}

/** `consolidated` beside `model`, and a folder `original` below it. */
function markLayouts(names: readonly SafetensorsName[], forms: Map<ManifestEntry, readonly string[]>): void {
  const models = new Set(names.filter(({ stem }) => stem === 'model').map(({ folder }) => folder))
  for (const { entry, folder, stem } of names) {
    const above = /^(.*?)original\/$/.exec(folder)?.[1]
    if (above !== undefined && models.has(above)) forms.set(entry, ['original'])
    else if (stem === 'consolidated' && models.has(folder)) forms.set(entry, ['consolidated'])
  }
}

/** Weights at the root beside the folders of a pipeline. */
function markSingleFiles(names: readonly SafetensorsName[], forms: Map<ManifestEntry, readonly string[]>): void {
  if (!names.some(({ folder }) => folder !== '')) return
  for (const { entry, folder, stem } of names) if (folder === '') forms.set(entry, [wordOf(stem)])
}

/** A name as a form: a letter first, and nothing that a reference cannot have. */
const wordOf = (stem: string): string =>
  stem
    .replaceAll(/[^a-z0-9_]+/g, '-')
    .replace(/^[^a-z]+|-+$/g, '')
    .slice(0, 40) || 'single'

/** The same weights in several precisions. */
function markPrecisions(names: readonly SafetensorsName[], forms: Map<ManifestEntry, readonly string[]>): void {
  const read = names.map((name) => ({ ...name, ...precisionOf(name.stem) }))
  const groups = [...Map.groupBy(read, ({ folder, plain }) => `${folder}${plain}`).values()]
  const several = groups.filter((group) => new Set(group.map(({ quant }) => quant)).size > 1)
  if (several.length === 0) return
  const quants = new Set(several.flatMap((group) => group.map(({ quant }) => quant)))
  // without a word in any of them, the best precision stands for the model
  const preferred = quants.has(DEFAULT_FORM) ? DEFAULT_FORM : PRECISIONS.find(([, quant]) => quants.has(quant))![1]
  for (const group of several) {
    const own = new Set(group.map(({ quant }) => quant))
    const fallback = [DEFAULT_FORM, preferred, ...PRECISIONS.map(([, quant]) => quant)].find((quant) => own.has(quant))!
    for (const { entry, quant } of group) {
      const takes = [...quants].filter((form) => (own.has(form) ? form : fallback) === quant)
      forms.set(entry, takes.map((form) => (form === preferred ? DEFAULT_FORM : form)).sort(compareText))
    }
  }
}

/** The precision in a name, and the name without it and without a shard suffix. */
function precisionOf(stem: string): { readonly quant: string; readonly plain: string } {
  const found = PRECISION_WORD.exec(stem)
  if (found === null) return { quant: DEFAULT_FORM, plain: plainName(stem) }
  const quant = PRECISIONS.find(([word]) => new RegExp(`^(?:${word.source})`).test(found[0]))![1]
  return { quant, plain: plainName(stem.slice(0, found.index) + stem.slice(found.index + found[0].length)) }
}

function plainName(stem: string): string {
  const bare = stem.replace(/[-._]+$/, '')
  return (parseShardName(bare)?.base ?? bare).replaceAll(/[-._]+/g, '-').replace(/^-|-$/g, '')
}
