import { CONFIG_QUANT_FORMATS, CONFIG_QUANT_METHODS, isFileQuant, isQuantToken } from '@svc/ref'
import { baseOf } from './names.ts'
import { parseShardName } from './shards.ts'

/** The quant of weights that name none (spec rec.15, rec.18). */
export const RAW = 'raw'

/** The longest dash-separated suffix of `stem` that is a quant token, or undefined. */
export function quantTokenAtEnd(stem: string, isToken: (text: string) => boolean = isQuantToken): string | undefined {
  // from the longest suffix (the whole stem) to the shortest; a token has at most 24 characters, so start near the end.
  for (let start = Math.max(0, stem.length - 25); start < stem.length; start++) {
    if (start > 0 && stem[start - 1] !== '-') continue
    const run = stem.slice(start)
    if (isToken(run)) return run
  }
  return undefined
}

/** The quant of a GGUF with a normalized name (spec add.2): as {@link ggufQuant}, with the words of spec ref.22 as well. */
export const normalizedQuant = (name: string): string => quantTokenAtEnd(stemOf(name), isFileQuant) ?? RAW

/** A GGUF's base name without extension and shard suffix. */
export function stemOf(name: string): string {
  const base = baseOf(name).replace(/\.gguf$/, '')
  return parseShardName(base)?.base ?? base
}

/**
 * Step 1 of the quant derivation (spec rec.14): the longest dash-separated suffix of a GGUF's base name, without
 * extension and shard suffix, that is a quant token. Case-sensitive: `Q4_K_M` gives `raw`, as does a name without a
 * token.
 */
export function ggufQuant(name: string): string {
  return quantTokenAtEnd(stemOf(name)) ?? RAW
}

/** A GGUF's base name without extension, shard suffix and quant, in lower case: the name of its model. */
export function ggufModelName(name: string): string {
  const base = stemOf(name)
  const token = quantTokenAtEnd(base, isFileQuant)
  const model = token === undefined ? base : base.slice(0, base.length - token.length)
  return model.replace(/-$/, '').toLowerCase()
}

/**
 * The variant of a vision projector: the same rule on the lower-cased base name, or undefined (`mmproj-F16.gguf` is
 * `f16`).
 */
export function projectorVariant(name: string): string | undefined {
  const base = baseOf(name)
    .replace(/\.[^.]*$/, '')
    .toLowerCase()
  return quantTokenAtEnd(parseShardName(base)?.base ?? base)
}

const METHODS: ReadonlySet<string> = new Set([...CONFIG_QUANT_METHODS, ...CONFIG_QUANT_FORMATS])

/**
 * Step 2: the `quant_method`, else the `format`, of the `quantization_config` in the root `config.json`, if it is in
 * the vocabulary with exactly that spelling. `compressed-tensors` is not, so that its `format` is used.
 */
export const configQuant = (method: string | undefined, format: string | undefined): string | undefined =>
  [method, format].find((word) => word !== undefined && METHODS.has(word))

/** In the order that decides ties. */
const DTYPE_QUANTS = [
  ['BF16', 'bf16'],
  ['F16', 'f16'],
  ['F32', 'f32']
] as const

/**
 * Step 3: the dtype with the most bytes. `bf16`, `f16` and `f32` win ties in this order, also against others. Any other
 * dtype with the most bytes gives `raw`, and so do weights without any bytes.
 */
export function dtypeQuant(bytesByDtype: ReadonlyMap<string, number>): string {
  let most = 0
  for (const bytes of bytesByDtype.values()) most = Math.max(most, bytes)
  if (most === 0) return RAW
  return DTYPE_QUANTS.find(([dtype]) => bytesByDtype.get(dtype) === most)?.[1] ?? RAW
}
