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

/** True for quant syntax: a token or a closed word, lower-case (spec ref.7, ref.8). */
export const isQuant = (text: string): boolean => isQuantToken(text) || WORDS.has(text)
