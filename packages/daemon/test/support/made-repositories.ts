import type { FakeRepo, FakeRepoFile } from '@svc/testkit/fake-hub'
import { gguf, safetensors, seededBytes } from './models.ts'

/** Kinds of repositories as they are out there, by what loaders read beside the weights. */
export const KINDS = [
  'gguf',
  'split-gguf-with-projector',
  'sharded-safetensors',
  'lora',
  'sentence-transformers',
  'diffusers',
  'whisper',
  'vision-language',
  'remote-code'
] as const
export type Kind = (typeof KINDS)[number]

type Contents = Record<string, string | Uint8Array>
const json = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`
const LARGE = (1 << 20) + 1

const TOKENIZER: Contents = {
  'tokenizer.json': '{"version":"1.0"}',
  'tokenizer_config.json': '{"model_max_length":512}',
  'special_tokens_map.json': '{}'
}

/** A repository of a kind whose bytes, and what lies about in it, follow from `seed`. */
export function madeRepository(kind: Kind, seed: number): FakeRepo {
  const has = (bit: number): boolean => ((seed * 2_654_435_761) >>> (8 + bit)) % 2 === 1
  const contents: Contents = {
    ...FILES[kind](seed),
    '.gitattributes': '*.safetensors filter=lfs diff=lfs merge=lfs -text\n',
    'README.md': `# ${kind} ${seed}\n`,
    ...(has(0) && { LICENSE: 'do what you like\r\n', 'docs/NOTICE.txt': Buffer.from([0xff, 0xfe, 0x41]) }),
    ...(has(1) && { 'pytorch_model.bin': seededBytes(LARGE + seed, seed) }),
    ...(has(2) && {
      'onnx/model.onnx': seededBytes(9_000, seed + 1),
      'onnx/model.onnx_data': seededBytes(LARGE, seed)
    }),
    ...(has(3) && { 'config.json': `\ufeff${json({ model_type: 'tiny' })}`, 'assets/ünï 漢.txt': '' }),
    ...(has(4) && { 'checkpoint-10/trainer_state.json': '{}', 'logs/events.txt': `${seed}` })
  }
  const files = Object.entries(contents).map(
    ([path, content]): FakeRepoFile => ({ path, content: typeof content === 'string' ? Buffer.from(content) : content })
  )
  return { id: `Made-${kind}/Model.${seed}`, files }
}

const FILES: Record<Kind, (seed: number) => Contents> = {
  gguf: (seed) => ({ 'model-q4_0.gguf': gguf(2_000, seed), 'model-q8_0.gguf': gguf(3_000, seed + 1), params: '{}' }),
  'split-gguf-with-projector': (seed) => ({
    'model-q4_0-00001-of-00002.gguf': gguf(2_000, seed),
    'model-q4_0-00002-of-00002.gguf': gguf(1_000, seed + 1),
    'mmproj-f16.gguf': gguf(500, seed + 2),
    template: '{{ .Prompt }}'
  }),
  'sharded-safetensors': (seed) => ({
    ...TOKENIZER,
    'model-00001-of-00002.safetensors': safetensors(700, seed),
    'model-00002-of-00002.safetensors': safetensors(800, seed + 1),
    'model.safetensors.index.json': '{"weight_map":{}}',
    'config.json': json({ model_type: 'qwen3' }),
    'generation_config.json': json({ temperature: 0.6, eos_token_id: [1, 2] }),
    'vocab.json': '{}',
    'merges.txt': '#version: 0.2\n',
    'hf_quant_config.json': '{}'
  }),
  lora: (seed) => ({
    'adapter_model.safetensors': safetensors(300, seed),
    'adapter_config.json': json({ peft_type: 'LORA', r: 8 }),
    'added_tokens.json': '{}',
    'training_args.bin': seededBytes(400, seed)
  }),
  'sentence-transformers': (seed) => ({
    ...TOKENIZER,
    'model.safetensors': safetensors(700, seed),
    'config.json': json({ model_type: 'bert' }),
    'vocab.txt': '[PAD]\n',
    'modules.json': json([
      { idx: 0, name: '0', path: '', type: 'sentence_transformers.models.Transformer' },
      { idx: 1, name: '1', path: '1_Pooling', type: 'sentence_transformers.models.Pooling' },
      { idx: 2, name: '2', path: '2_Dense', type: 'sentence_transformers.models.Dense' }
    ]),
    'config_sentence_transformers.json': '{}',
    'sentence_bert_config.json': '{"max_seq_length":256}',
    '1_Pooling/config.json': '{"pooling_mode_cls_token":true}',
    '2_Dense/config.json': '{"in_features":8}',
    '2_Dense/model.safetensors': safetensors(100, seed + 1)
  }),
  diffusers: (seed) => ({
    'model_index.json': json({
      _class_name: 'TinyPipeline',
      scheduler: ['diffusers', 'DDIMScheduler'],
      text_encoder: ['transformers', 'CLIPTextModel'],
      tokenizer: ['transformers', 'CLIPTokenizer'],
      unet: ['diffusers', 'UNet2DConditionModel']
    }),
    'scheduler/scheduler_config.json': '{}',
    'text_encoder/config.json': '{}',
    'text_encoder/model.safetensors': safetensors(200, seed),
    'tokenizer/tokenizer_config.json': '{}',
    'tokenizer/vocab.json': '{}',
    'tokenizer/merges.txt': '',
    'unet/config.json': '{}',
    'unet/diffusion_pytorch_model.safetensors': safetensors(300, seed + 1)
  }),
  whisper: (seed) => ({
    ...TOKENIZER,
    'model.safetensors': safetensors(600, seed),
    'config.json': json({ model_type: 'whisper' }),
    'generation_config.json': json({ forced_decoder_ids: [[1, 2]] }),
    'preprocessor_config.json': '{}',
    'normalizer.json': '{}',
    'tf_model.h5': seededBytes(LARGE, seed)
  }),
  'vision-language': (seed) => ({
    ...TOKENIZER,
    'model.safetensors': safetensors(600, seed),
    'config.json': json({ model_type: 'qwen3_vl' }),
    'chat_template.json': '{"chat_template":"b"}',
    'chat_template.jinja': '{{ a }}',
    'preprocessor_config.json': '{}',
    'video_preprocessor_config.json': '{}'
  }),
  'remote-code': (seed) => ({
    'model.safetensors': safetensors(600, seed),
    'config.json': json({ model_type: 'acme', auto_map: { AutoModel: 'modeling_acme.AcmeModel' } }),
    'modeling_acme.py': 'from .utils_acme import helper\n',
    'configuration_acme.py': 'pass\n',
    'processing_acme.py': 'pass\n',
    'utils_acme.py': 'def helper(): pass\n',
    'ops/__init__.py': '',
    'ops/kernel.cu': '// kernel\n',
    'acme.tiktoken': 'IQ== 0\n'
  })
}
