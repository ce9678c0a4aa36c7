import type { FakeRepoFile } from '@svc/testkit/fake-hub'
import { makeLlamaGgufs, makeProjectorGguf } from '@svc/testkit/llama-gguf'
import { makeGguf, makeSafetensors, seededBytes } from '@svc/testkit/models'

type Files = Readonly<Record<string, string | Uint8Array>>

/** A repository of a shape that publishers use, and what an import of it brings. */
export interface Shape {
  readonly shape: string
  readonly files: Files
  /** Of another branch than main, with its files. */
  readonly branch?: string
  /** What is typed after the name of the repository. */
  readonly typed?: readonly string[]
  readonly quants: readonly string[]
  /** What comes in place of files that are pieces of it. */
  readonly comesAs?: Files
  /** What the plan leaves out. */
  readonly leftOut?: readonly string[]
  /** The file that llama.cpp loads. */
  readonly llamaCpp?: string
}

let seed = 0
const weights = (): Buffer =>
  makeSafetensors({ tensors: [{ name: 'a.weight', dtype: 'BF16', shape: [8, 4] }], seed: ++seed })
const llama = (): Buffer => makeLlamaGgufs({ seed: ++seed })[0]!
const gguf = (metadata: Parameters<typeof makeGguf>[0] & object = {}): Buffer => makeGguf({ seed: ++seed, ...metadata })
const typedGguf = (type: string): Buffer => gguf({ metadata: { 'general.type': type } })
const ofFileType = (fileType: number): Buffer => gguf({ metadata: { 'general.file_type': fileType } })
const noise = (sizeBytes = 1_000): Buffer => seededBytes(sizeBytes, ++seed)
const json = (value: unknown): string => JSON.stringify(value, null, 2)
const config = (more: object = {}): Files => ({ 'config.json': json({ model_type: 'llama', ...more }) })
const tokenizer = (at = ''): Files => ({
  [`${at}tokenizer.json`]: json({ version: '1.0', model: { type: 'WordLevel', vocab: { hello: 0 } } }),
  [`${at}tokenizer_config.json`]: json({ tokenizer_class: 'PreTrainedTokenizerFast' })
})
const prefixed = (at: string, files: Files): Files =>
  Object.fromEntries(Object.entries(files).map(([path, content]) => [at + path, content]))
function sharded(from: number, count: number): Files {
  const name = (at: number): string =>
    `model-${String(at).padStart(5, '0')}-of-${String(count).padStart(5, '0')}.safetensors`
  const names = Array.from({ length: count }, (_, i) => name(from + i))
  return {
    ...Object.fromEntries(names.map((each) => [each, weights()])),
    'model.safetensors.index.json': json({ weight_map: { 'a.weight': names[0], 'b.weight': names.at(-1) } })
  }
}
const joined = llama()
const MIB = 1 << 20
/** More than what comes along may have. */
const LARGE = MIB + 1

/** The shapes of repositories as publishers make them, with headers as the programs write them. */
export const SHAPES: readonly Shape[] = [
  // GGUF: quants in names
  {
    shape: 'one quant',
    files: { 'Model-7B.Q4_K_M.gguf': llama() },
    quants: ['q4_k_m'],
    llamaCpp: 'Model-7B.Q4_K_M.gguf'
  },
  {
    shape: 'one of two quants',
    files: { 'Model-7B-Q4_K_M.gguf': llama(), 'Model-7B-Q8_0.gguf': llama(), ...config() },
    typed: [':Q8_0'],
    quants: ['q8_0'],
    leftOut: ['Model-7B-Q4_K_M.gguf'],
    llamaCpp: 'Model-7B-Q8_0.gguf'
  },
  {
    shape: 'the quant in the middle',
    files: { 'gemma-4-31B_q4_0-it.gguf': llama() },
    quants: ['q4_0'],
    llamaCpp: 'gemma-4-31B_q4_0-it.gguf'
  },
  {
    shape: 'words behind the quant',
    files: { 'Hy3-Q4_K_M-mtp-v2.gguf': llama() },
    quants: ['q4_k_m'],
    llamaCpp: 'Hy3-Q4_K_M-mtp-v2.gguf'
  },
  {
    shape: 'a folder for each quant',
    files: {
      ...Object.fromEntries(
        makeLlamaGgufs({ shards: 2, seed: 90 }).map((bytes, i) => [`Q6_K/M-70B-Q6_K-0000${i + 1}-of-00002.gguf`, bytes])
      ),
      'Q8_0/M-70B-Q8_0-00001-of-00002.gguf': gguf(),
      'Q8_0/M-70B-Q8_0-00002-of-00002.gguf': gguf()
    },
    typed: [':q6_k'],
    quants: ['q6_k'],
    leftOut: ['Q8_0/M-70B-Q8_0-00001-of-00002.gguf', 'Q8_0/M-70B-Q8_0-00002-of-00002.gguf'],
    llamaCpp: 'Q6_K/M-70B-Q6_K-00001-of-00002.gguf'
  },
  {
    shape: 'mxfp4_moe',
    files: { 'gpt-oss-20b-MXFP4_MOE.gguf': llama() },
    quants: ['mxfp4_moe'],
    llamaCpp: 'gpt-oss-20b-MXFP4_MOE.gguf'
  },
  // GGUF: what headers say
  { shape: 'a quant that only the header tells', files: { 'model-compact.gguf': ofFileType(15) }, quants: ['q4_k_m'] },
  {
    shape: 'six choices that no name tells apart by quant',
    files: Object.fromEntries(
      ['Quality', 'Balanced', 'Compact', 'Mini', 'I-Quality', 'I-Compact'].map((word, i) => [
        `M-APEX-${word}.gguf`,
        ofFileType([18, 17, 15, 12, 17, 15][i]!)
      ])
    ),
    typed: ['--file', '*I-Compact*'],
    quants: ['q4_k_m.i-compact'],
    leftOut: ['Quality', 'Balanced', 'Compact', 'Mini', 'I-Quality'].map((word) => `M-APEX-${word}.gguf`)
  },
  // GGUF: sidecars
  {
    shape: 'a projector, by prefix',
    files: { 'M-Q4_K_M.gguf': llama(), 'mmproj-F16.gguf': makeProjectorGguf() },
    quants: ['q4_k_m'],
    llamaCpp: 'M-Q4_K_M.gguf'
  },
  {
    shape: 'a projector, in the middle of the name',
    files: { 'M-Q4_K_M.gguf': llama(), 'M.mmproj-f16.gguf': makeProjectorGguf() },
    quants: ['q4_k_m'],
    llamaCpp: 'M-Q4_K_M.gguf'
  },
  {
    shape: 'a projector that only the header tells',
    files: { 'gemma-4-it-qat-q4_0.gguf': llama(), 'vision-tower-f16.gguf': makeProjectorGguf() },
    typed: [':q4_0'],
    quants: ['q4_0'],
    llamaCpp: 'gemma-4-it-qat-q4_0.gguf'
  },
  {
    shape: 'projectors of three precisions',
    files: {
      'M-Q8_0.gguf': llama(),
      'mmproj-BF16.gguf': makeProjectorGguf(),
      'mmproj-F16.gguf': makeProjectorGguf(),
      'mmproj-F32.gguf': makeProjectorGguf()
    },
    quants: ['q8_0'],
    llamaCpp: 'M-Q8_0.gguf',
    leftOut: ['mmproj-BF16.gguf', 'mmproj-F32.gguf']
  },
  {
    shape: 'a draft head in a folder',
    files: { 'M-Q8_0.gguf': llama(), 'MTP/mtp-M-Q8_0.gguf': gguf() },
    quants: ['q8_0'],
    llamaCpp: 'M-Q8_0.gguf'
  },
  {
    shape: 'draft heads of two precisions',
    files: { 'M-Q4_K_M.gguf': llama(), 'eagle3-M-Q4_K_M.gguf': gguf(), 'eagle3-M-BF16.gguf': gguf() },
    typed: [':q4_k_m'],
    quants: ['q4_k_m'],
    llamaCpp: 'M-Q4_K_M.gguf',
    leftOut: ['eagle3-M-BF16.gguf']
  },
  {
    shape: 'an importance matrix and a vocabulary',
    files: {
      'M-Q4_K_M.gguf': llama(),
      'M-imatrix.gguf': typedGguf('imatrix'),
      'ggml-vocab-m.gguf': typedGguf('vocab')
    },
    quants: ['q4_k_m'],
    llamaCpp: 'M-Q4_K_M.gguf',
    leftOut: ['M-imatrix.gguf', 'ggml-vocab-m.gguf']
  },
  {
    shape: 'a LoRA adapter in GGUF',
    files: { 'M-Q4_K_M.gguf': llama(), 'M-style-f16.gguf': typedGguf('adapter') },
    typed: [':q4_k_m'],
    quants: ['q4_k_m'],
    llamaCpp: 'M-Q4_K_M.gguf',
    leftOut: ['M-style-f16.gguf']
  },
  {
    shape: 'switches beside',
    files: {
      'M-Q8_0.gguf': llama(),
      'preset.ini': '[m]\nctx-size = 4096\n',
      params: '{"stop":["</s>"]}',
      template: '{{ .Prompt }}'
    },
    quants: ['q8_0'],
    llamaCpp: 'M-Q8_0.gguf'
  },
  // safetensors
  { shape: 'safetensors', files: { 'model.safetensors': weights(), ...config(), ...tokenizer() }, quants: ['bf16'] },
  { shape: 'safetensors in parts', files: { ...sharded(1, 3), ...config(), ...tokenizer() }, quants: ['bf16'] },
  { shape: 'parts that are counted from 0', files: { ...sharded(0, 2), ...config() }, quants: ['bf16'] },
  {
    shape: 'Mistral: consolidated beside parts, a large tokenizer',
    files: {
      ...sharded(1, 2),
      'consolidated.safetensors': weights(),
      'params.json': json({ dim: 8 }),
      'tekken.json': noise(17 * MIB),
      ...config()
    },
    quants: ['bf16'],
    leftOut: ['consolidated.safetensors']
  },
  {
    shape: 'gpt-oss: original/ beside parts',
    files: {
      ...sharded(1, 2),
      ...prefixed('original/', { 'model.safetensors': weights(), 'config.json': '{}', 'dtypes.json': '{}' }),
      ...config(),
      ...tokenizer()
    },
    quants: ['bf16'],
    leftOut: ['original/model.safetensors']
  },
  {
    shape: 'vocabularies of other kinds',
    files: {
      'model.safetensors': weights(),
      ...config(),
      'qwen.tiktoken': noise(LARGE),
      'nested/source.spm': noise(LARGE),
      'nested/vocab.json': noise(LARGE),
      'merges.txt': noise(LARGE)
    },
    quants: ['bf16']
  },
  {
    shape: 'AWQ',
    files: { 'model.safetensors': weights(), ...config({ quantization_config: { quant_method: 'awq', bits: 4 } }) },
    quants: ['awq']
  },
  {
    shape: 'GPTQ',
    files: {
      'model.safetensors': weights(),
      ...config({ quantization_config: { quant_method: 'gptq', bits: 4 } }),
      'quantize_config.json': '{"bits":4}'
    },
    quants: ['gptq']
  },
  {
    shape: 'FP8',
    files: { 'model.safetensors': weights(), ...config({ quantization_config: { quant_method: 'fp8' } }) },
    quants: ['fp8']
  },
  {
    shape: 'MLX of 4 bits',
    files: { ...sharded(1, 2), ...config({ quantization: { bits: 4, group_size: 64 } }), ...tokenizer() },
    quants: ['mlx-4bit']
  },
  {
    shape: 'MLX of mxfp4',
    files: { 'model.safetensors': weights(), ...config({ quantization: { bits: 4, group_size: 32, mode: 'mxfp4' } }) },
    quants: ['mxfp4']
  },
  {
    shape: 'EXL2, a branch for each size',
    branch: '4.0bpw',
    files: {
      'output.safetensors': weights(),
      ...config({ quantization_config: { quant_method: 'exl2', bits: 4.0 } }),
      ...tokenizer()
    },
    quants: ['exl2-4.0bpw']
  },
  {
    shape: 'EXL3',
    files: { 'model.safetensors': weights(), ...config({ quantization_config: { quant_method: 'exl3', bits: 3.5 } }) },
    quants: ['exl3-3.5bpw']
  },
  {
    shape: 'BitNet',
    files: { 'ggml-model-i2_s.gguf': llama() },
    quants: ['i2_s'],
    llamaCpp: 'ggml-model-i2_s.gguf'
  },
  // several models in one
  {
    shape: 'diffusers: half precision beside full',
    files: {
      'model_index.json': json({ _class_name: 'P' }),
      ...prefixed('unet/', {
        'config.json': '{}',
        'diffusion_pytorch_model.safetensors': weights(),
        'diffusion_pytorch_model.fp16.safetensors': weights()
      }),
      ...prefixed('vae/', { 'config.json': '{}', 'diffusion_pytorch_model.safetensors': weights() }),
      ...tokenizer('tokenizer/')
    },
    quants: ['bf16'],
    leftOut: ['unet/diffusion_pytorch_model.fp16.safetensors']
  },
  {
    shape: 'diffusers: a single file beside the folders',
    files: {
      'model_index.json': json({ _class_name: 'P' }),
      'tiny-v1.safetensors': weights(),
      ...prefixed('unet/', { 'config.json': '{}', 'diffusion_pytorch_model.safetensors': weights() }),
      ...prefixed('vae/', { 'config.json': '{}', 'diffusion_pytorch_model.safetensors': weights() })
    },
    quants: ['bf16'],
    leftOut: ['tiny-v1.safetensors']
  },
  {
    shape: 'ComfyUI: split files',
    files: {
      'split_files/diffusion_models/m_fp16.safetensors': weights(),
      'split_files/diffusion_models/m_fp8_scaled.safetensors': weights(),
      'split_files/text_encoders/t5.safetensors': weights(),
      'split_files/vae/ae.safetensors': weights()
    },
    typed: [':fp8'],
    quants: ['fp8'],
    leftOut: ['split_files/diffusion_models/m_fp16.safetensors']
  },
  // others
  {
    shape: 'sentence-transformers',
    files: {
      'model.safetensors': weights(),
      ...config({ model_type: 'bert' }),
      'modules.json': json([{ idx: 0, name: '0', path: '', type: 'sentence_transformers.models.Transformer' }]),
      '1_Pooling/config.json': '{}',
      '2_Dense/model.safetensors': weights(),
      'pytorch_model.bin': noise(LARGE),
      'onnx/model.onnx': noise(LARGE)
    },
    quants: ['bf16'],
    leftOut: ['onnx/model.onnx', 'pytorch_model.bin']
  },
  {
    shape: 'PEFT',
    files: {
      'adapter_config.json': json({ peft_type: 'LORA', r: 4 }),
      'adapter_model.safetensors': weights(),
      ...tokenizer()
    },
    quants: ['raw']
  },
  {
    shape: 'remote code',
    files: {
      'model.safetensors': weights(),
      ...config({ auto_map: { AutoModel: 'modeling_acme.Acme' } }),
      'modeling_acme.py': 'from .utils import W\n',
      'ops/utils.py': 'W = 1\n'
    },
    quants: ['bf16']
  },
  {
    shape: 'a GGUF in pieces',
    files: {
      'Big-Q4_K_M.gguf.part1of2': joined.subarray(0, 70_000),
      'Big-Q4_K_M.gguf.part2of2': joined.subarray(70_000)
    },
    comesAs: { 'Big-Q4_K_M.gguf': joined },
    llamaCpp: 'Big-Q4_K_M.gguf',
    quants: ['q4_k_m']
  },
  // as they are
  {
    shape: 'ONNX, for transformers.js',
    files: { 'onnx/model.onnx': noise(LARGE), 'onnx/model_q4.onnx': noise(LARGE), ...config(), ...tokenizer() },
    typed: ['--opaque'],
    quants: ['raw']
  },
  {
    shape: 'whisper.cpp',
    files: { 'ggml-base.en.bin': noise(LARGE), 'ggml-tiny.bin': noise(LARGE) },
    typed: ['--opaque', '--file', 'ggml-tiny.bin'],
    quants: ['raw'],
    leftOut: ['ggml-base.en.bin']
  },
  {
    shape: 'OpenVINO',
    files: { 'openvino_model.xml': '<net/>', 'openvino_model.bin': noise(LARGE), ...config() },
    typed: ['--opaque'],
    quants: ['raw']
  }
]

type MadeFile = FakeRepoFile & { readonly content: Buffer }
const made = (files: Files): MadeFile[] =>
  Object.entries({ ...files, 'README.md': '# made\n' }).map(([path, content]) => ({
    path,
    content: Buffer.from(content)
  }))

export const filesOf = ({ files }: Shape): MadeFile[] => made(files)
/** What an import brings. */
export const comingOf = ({ files, comesAs = files, leftOut = [] }: Shape): MadeFile[] =>
  made(comesAs).filter(({ path }) => !leftOut.includes(path))
