/**
 * The quants of `general.file_type` (`llama_ftype` of llama.cpp, whose numbers are stable), indexed by number. Absent: numbers that
 * were never used, or that forks use for different things.
 */
const FILE_TYPES: readonly (string | undefined)[] = [
  'f32',
  'f16',
  'q4_0',
  'q4_1',
  undefined,
  undefined,
  undefined,
  'q8_0',
  'q5_0',
  'q5_1',
  'q2_k',
  'q3_k_s',
  'q3_k_m',
  'q3_k_l',
  'q4_k_s',
  'q4_k_m',
  'q5_k_s',
  'q5_k_m',
  'q6_k',
  'iq2_xxs',
  'iq2_xs',
  'q2_k_s',
  'iq3_xs',
  'iq3_xxs',
  'iq1_s',
  'iq4_nl',
  'iq3_s',
  'iq3_m',
  'iq2_s',
  'iq2_m',
  'iq4_xs',
  'iq1_m',
  'bf16',
  'q4_0_4_4',
  'q4_0_4_8',
  'q4_0_8_8',
  'tq1_0',
  'tq2_0',
  'mxfp4_moe',
  'nvfp4',
  'q1_0',
  'q2_0'
]
/** Set in a file type that llama.cpp has guessed. */
const GUESSED = 1024

/** Quants by the type of most weights (`ggml_type`), as llama.cpp guesses a file type from it. */
const TENSOR_TYPES: Readonly<Record<number, string>> = {
  0: 'f32',
  1: 'f16',
  2: 'q4_0',
  3: 'q4_1',
  6: 'q5_0',
  7: 'q5_1',
  8: 'q8_0',
  10: 'q2_k',
  11: 'q3_k_m',
  12: 'q4_k_m',
  13: 'q5_k_m',
  14: 'q6_k',
  16: 'iq2_xxs',
  17: 'iq2_xs',
  18: 'iq3_xxs',
  19: 'iq1_s',
  20: 'iq4_nl',
  21: 'iq3_s',
  22: 'iq2_s',
  23: 'iq4_xs',
  29: 'iq1_m',
  30: 'bf16',
  31: 'q4_0_4_4',
  32: 'q4_0_4_8',
  33: 'q4_0_8_8',
  34: 'tq1_0',
  35: 'tq2_0',
  39: 'mxfp4_moe',
  40: 'nvfp4',
  41: 'q1_0',
  42: 'q2_0'
}

/** The quant that a GGUF's `general.file_type` means, or undefined. */
export const quantOfFileType = (fileType: number): string | undefined => FILE_TYPES[fileType % GUESSED]

/** The quant of a GGUF most of whose weights have this type, or undefined. */
export const quantOfTensorType = (type: number): string | undefined => TENSOR_TYPES[type]
