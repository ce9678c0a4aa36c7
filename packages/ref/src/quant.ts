/** Longest quant, in characters (spec ref.7). */
export const QUANT_MAX_CHARS = 24

/** `quantization_config.quant_method` values that become a quant (spec rec.17). */
export const CONFIG_QUANT_METHODS: readonly string[] = [
  'gptq',
  'awq',
  'bitsandbytes',
  'aqlm',
  'vptq',
  'quanto',
  'eetq',
  'higgs',
  'hqq',
  'spqr',
  'bitnet',
  'quark',
  'torchao',
  'auto-round',
  'fbgemm_fp8',
  'fp_quant',
  'fp8',
  'mxfp4',
  'mxfp8',
  'nvfp4',
  'exl2',
  'exl3',
  'modelopt'
]

/** `quantization_config.format` values that become a quant (spec rec.17). */
export const CONFIG_QUANT_FORMATS: readonly string[] = [
  'float-quantized',
  'int-quantized',
  'naive-quantized',
  'pack-quantized',
  'nvfp4-pack-quantized',
  'mxfp4-pack-quantized',
  'mxfp8-quantized',
  'marlin-24',
  'mixed-precision'
]

/** The closed words: quants that need not match the token pattern (spec ref.8). */
export const QUANT_WORDS: readonly string[] = [
  'raw',
  'nvfp4',
  'ud-nvfp4',
  ...CONFIG_QUANT_METHODS.filter((word) => word !== 'nvfp4'),
  ...CONFIG_QUANT_FORMATS
]

const TOKEN = /^(?:(?:ud-)?(?:q|iq|tq|bf|f|fp|mx|mxfp)[0-9][a-z0-9_]*|ud-[0-9][a-z0-9_]*)$/
const WORDS: ReadonlySet<string> = new Set(QUANT_WORDS)

/**
 * True for what a GGUF file name may carry as its quant: the token pattern, `nvfp4` or `ud-nvfp4`, at most
 * {@link QUANT_MAX_CHARS} characters. The other closed words do not count in file names (spec rec.14).
 */
export const isQuantToken = (text: string): boolean =>
  text.length <= QUANT_MAX_CHARS && (TOKEN.test(text) || text === 'nvfp4' || text === 'ud-nvfp4')

/** Longest quant with a qualifier, in characters. */
const QUALIFIED_QUANT_MAX_CHARS = 96

/** Words of programs that the contract's pattern leaves out: ternary and packed types, bits per weight. */
const FILE_WORD = /^(?:ud-)?(?:pq[0-9][a-z0-9_]*|i[0-9]_[a-z0-9_]+|nvfp4_[a-z0-9_]+|[0-9]{1,2}(?:\.[0-9]{1,2})?bpw)$/
/** Words that a `config.json` yields beside the closed ones: MLX's bits, and the bits per weight of EXL2 and EXL3. */
const CONFIG_WORD = /^(?:mlx-[0-9]{1,2}bit|exl[23]-[0-9]{1,2}(?:\.[0-9]{1,2})?bpw)$/
const QUALIFIED = /^(.+?)\.([a-z][a-z0-9_-]*)$/

/** True for what the base name of a file may carry as its quant with normalized names (spec ref.22). */
export const isFileQuant = (text: string): boolean =>
  isQuantToken(text) || (text.length <= QUANT_MAX_CHARS && FILE_WORD.test(text))

/** True for quants of the contract: a token or a closed word, lower-case (spec ref.7, ref.8). */
export const isPlainQuant = (text: string): boolean => isQuantToken(text) || WORDS.has(text)

const isUnqualified = (text: string): boolean =>
  isPlainQuant(text) || isFileQuant(text) || (text.length <= QUANT_MAX_CHARS && CONFIG_WORD.test(text))

/** True for quant syntax (spec ref.7, ref.8, ref.21), with or without a qualifier (spec ref.23). */
export function isQuant(text: string): boolean {
  if (isUnqualified(text)) return true
  return text.length <= QUALIFIED_QUANT_MAX_CHARS && isUnqualified(QUALIFIED.exec(text)?.[1] ?? '')
}

/** A quant without its qualifier (spec ref.23): `q4_k_m` of `q4_k_m.small`. */
export const unqualified = (quant: string): string =>
  isUnqualified(quant) ? quant : (QUALIFIED.exec(quant)?.[1] ?? quant)
