import type { FakeRepoFile } from './fake-hub-repo.ts'
import { makeGguf, makeSafetensors, seededBytes } from './models.ts'
import { type Random, randomFrom } from './mutate.ts'

/** The files of a repository, by path. */
export type MadeFiles = Record<string, string | Uint8Array>

/** More than a companion may have. */
const LARGE_BYTES = (1 << 20) + 1
const json = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`
const weights = (random: Random): Buffer =>
  makeSafetensors({ tensors: [{ name: 'a.weight', dtype: 'BF16', shape: [8, 4] }], seed: random(1_000_000) })
const gguf = (random: Random): Buffer =>
  makeGguf({ tensors: [{ name: 'a.weight', shape: [32], type: 'Q8_0' }], seed: random(1_000_000) })
const noise = (random: Random, sizeBytes = 1 + random(3_000)): Buffer => seededBytes(sizeBytes, random(1_000_000))

const tokenizer = (at = ''): MadeFiles => ({
  [`${at}tokenizer.json`]: json({ version: '1.0', model: { type: 'WordLevel', vocab: { hello: 0 } } }),
  [`${at}tokenizer_config.json`]: '{"tokenizer_class": "PreTrainedTokenizerFast"}',
  [`${at}special_tokens_map.json`]: json({ unk_token: '[UNK]' })
})

/** The kinds of repository that loaders know, each in the form its own library writes. */
const KINDS: Readonly<Record<string, (random: Random) => MadeFiles>> = {
  gguf: (random) => ({
    'tiny-q4_k_m.gguf': gguf(random),
    'tiny-q8_0.gguf': gguf(random),
    'mmproj-F16.gguf': gguf(random),
    'imatrix_tiny.dat': noise(random),
    params: '{"stop": ["</s>"]}',
    template: '{{ .Prompt }}'
  }),
  'split gguf': (random) => ({
    'Q8_0/tiny-q8_0-00001-of-00002.gguf': gguf(random),
    'Q8_0/tiny-q8_0-00002-of-00002.gguf': gguf(random),
    'config.json': json({ model_type: 'llama' })
  }),
  llama: (random) => ({
    'config.json': `\ufeff${json({ model_type: 'llama', architectures: ['LlamaForCausalLM'] })}`,
    'generation_config.json': json({ temperature: 0.6, eos_token_id: [1, 2] }),
    'model.safetensors': weights(random),
    ...tokenizer(),
    'tokenizer.model': noise(random),
    'USE_POLICY.md': 'Be kind.\n',
    'LICENSE.txt': 'A licence of its own.\r\n',
    'original/params.json': '{"dim": 8}',
    'original/consolidated.00.pth': noise(random, LARGE_BYTES),
    'original/tokenizer.model': noise(random)
  }),
  qwen: (random) => ({
    'config.json': json({ model_type: 'qwen3' }),
    'generation_config.json': json({ top_k: 20 }),
    'model-00001-of-00002.safetensors': weights(random),
    'model-00002-of-00002.safetensors': weights(random),
    'model.safetensors.index.json': json({ weight_map: { 'a.weight': 'model-00001-of-00002.safetensors' } }),
    ...tokenizer(),
    'vocab.json': '{"hello": 0}',
    'merges.txt': '#version: 0.2\nh e\n',
    'chat_template.jinja': '{{ messages }}',
    'chat_template.json': json({ chat_template: '{{ messages }}' }),
    LICENSE: 'Yours.\n'
  }),
  lora: (random) => ({
    'adapter_config.json': json({ peft_type: 'LORA', r: 4 }),
    'adapter_model.safetensors': weights(random),
    ...tokenizer(),
    'training_args.bin': noise(random),
    'checkpoint-10/adapter_config.json': json({ peft_type: 'LORA', r: 4 }),
    'checkpoint-10/adapter_model.safetensors': weights(random),
    'checkpoint-10/optimizer.pt': noise(random, LARGE_BYTES),
    'checkpoint-10/rng_state.pth': noise(random),
    'checkpoint-10/trainer_state.json': '{"epoch": 1}'
  }),
  'sentence-transformers': (random) => ({
    'config.json': json({ model_type: 'bert' }),
    'config_sentence_transformers.json': json({ similarity_fn_name: 'cosine' }),
    'sentence_bert_config.json': json({ max_seq_length: 32 }),
    'modules.json': json(['', '1_Pooling', '2_Dense'].map((path, idx) => ({ idx, path, name: `${idx}` }))),
    '1_Pooling/config.json': json({ pooling_mode_cls_token: true }),
    '2_Dense/config.json': json({ in_features: 8 }),
    '2_Dense/model.safetensors': weights(random),
    'model.safetensors': weights(random),
    'pytorch_model.bin': noise(random, LARGE_BYTES),
    ...tokenizer(),
    'vocab.txt': '[UNK]\nhello\n',
    'onnx/model.onnx': noise(random, LARGE_BYTES),
    'onnx/model_O1.onnx': noise(random),
    'openvino/openvino_model.bin': noise(random),
    'openvino/openvino_model.xml': '<net/>'
  }),
  diffusers: (random) => ({
    'model_index.json': json({ _class_name: 'P', unet: ['diffusers', 'U'], vae: ['diffusers', 'V'] }),
    'scheduler/scheduler_config.json': json({ _class_name: 'DDIMScheduler' }),
    'text_encoder/config.json': json({ model_type: 'clip_text_model' }),
    'text_encoder/model.safetensors': weights(random),
    ...tokenizer('tokenizer/'),
    'tokenizer/vocab.json': '{"hello": 0}',
    'tokenizer/merges.txt': '#version: 0.2\n',
    'unet/config.json': json({ _class_name: 'U' }),
    'unet/diffusion_pytorch_model.safetensors': weights(random),
    'unet/diffusion_pytorch_model.fp16.safetensors': weights(random),
    'unet/diffusion_pytorch_model.bin': noise(random, LARGE_BYTES),
    'vae/config.json': json({ _class_name: 'V' }),
    'vae/diffusion_pytorch_model.safetensors': weights(random),
    'feature_extractor/preprocessor_config.json': json({ size: 32 }),
    'tiny-v1.yaml': 'model: tiny\n',
    'tiny-v1.ckpt': noise(random, LARGE_BYTES)
  }),
  whisper: (random) => ({
    'config.json': json({ model_type: 'whisper' }),
    'generation_config.json': json({ no_timestamps_token_id: 7 }),
    'preprocessor_config.json': json({ feature_size: 80 }),
    'model.safetensors': weights(random),
    ...tokenizer(),
    'added_tokens.json': '{}',
    'normalizer.json': '{"colour": "color"}',
    'vocab.json': '{"hello": 0}',
    'merges.txt': '',
    'flax_model.msgpack': noise(random, LARGE_BYTES),
    'tf_model.h5': noise(random)
  }),
  vision: (random) => ({
    'config.json': json({ model_type: 'qwen2_vl' }),
    'generation_config.json': json({ top_k: 1 }),
    'preprocessor_config.json': json({ patch_size: 14 }),
    'processor_config.json': json({ processor_class: 'P' }),
    'video_preprocessor_config.json': json({ fps: 2 }),
    'chat_template.json': json({ chat_template: '{{ messages }}' }),
    'chat_templates/tool_use.jinja': '{{ tools }}',
    'model.safetensors': weights(random),
    ...tokenizer(),
    'examples/picture.png': noise(random)
  }),
  'remote code': (random) => ({
    'config.json': json({ auto_map: { AutoModel: 'modeling_acme.Acme' } }),
    'configuration_acme.py': 'from .utils_acme import WIDTH\n',
    'modeling_acme.py': 'from .utils_acme import WIDTH\n',
    'processing_acme.py': 'import re\n',
    'image_processor.py': '# an image processor\n',
    'utils_acme.py': 'WIDTH = 8\n',
    'ops/__init__.py': '',
    'ops/kernel.cu': '// none\n',
    'ops/__pycache__/kernel.cpython-311.pyc': noise(random),
    'model.safetensors': weights(random)
  }),
  quantized: (random) => ({
    'config.json': json({ quantization_config: { quant_method: 'gptq', bits: 4 } }),
    'quantize_config.json': '{"bits": 4}',
    'hf_quant_config.json': '{"producer": {}}',
    'model.safetensors': weights(random),
    'consolidated.safetensors': weights(random),
    'params.json': '{}',
    'tekken.json': noise(random),
    'tokenizer.json': '{}'
  }),
  names: (random) => ({
    'model.safetensors': weights(random),
    'readme.md': 'another\n',
    'Config.json': '{}',
    'config.json': '{"model_type": "odd"',
    'modelconfig.json': '{"of": "somebody else"}',
    'tokenizer.tar': noise(random),
    'adapter.tar': noise(random),
    'manifest/of/another.json': '{}',
    'index.html': '<p>hello',
    '.svc-view.json': '{}',
    'größe/ÄÖ 100%20+#?&=.txt': 'utf-8\n',
    'e\u0301/decomposed.txt': 'NFD\n',
    '模型/说明.md': '你好\n',
    '🤗.txt': 'hugs\n',
    ' leading and trailing ': 'blanks\n',
    'quo\'te"s`$(x);.sh': 'echo\n',
    '-rf': 'an option\n',
    'LICENSE-CODE': 'MIT-like\n',
    NOTICE: 'Noticed.\n',
    [`${'deep/'.repeat(31)}down.txt`]: 'deep\n',
    [`${'l'.repeat(251)}.txt`]: 'long\n'
  })
}

const MAYBE: readonly ((random: Random) => MadeFiles)[] = [
  () => ({ 'README.md': '---\nlicense: mit\n---\n# made\n' }),
  () => ({ '.gitattributes': '*.safetensors filter=lfs diff=lfs merge=lfs -text\n', '.gitignore': '' }),
  (random) => ({ 'assets/banner.png': noise(random), 'logs/events.out.tfevents.1': noise(random) }),
  (random) => ({ 'archive/notes.zip': noise(random, LARGE_BYTES), 'archive/exactly.bin': noise(random, 1 << 20) }),
  () => ({ empty: '', 'nested/empty/__init__.py': '' }),
  (random) => ({
    'adapters/one/adapter_config.json': '{"r": 8}',
    'adapters/one/adapter_model.safetensors': weights(random)
  }),
  () => ({ 'adapters/half/adapter_config.json': '{"r": 8}' }),
  () => ({ 'sub/config.json': '{"nested": true}', 'sub/generation_config.json': '{}' }),
  (random) => ({ 'random_state.pkl': noise(random), 'scheduler.pt': noise(random) }),
  () => ({ COPYING: 'Copy it.\n', 'sub/LICENSE': 'And this.\n' }),
  () => ({ 'added_tokens.json': '{"<x>": 9}', 'sub/tokenizer_config.json': '{}' }),
  (random) => ({ 'spiece.model': noise(random), 'qwen.tiktoken': noise(random), 'vocab.bpe': 'a b\n' })
]

/** One of a kind, in a variation that the seed decides. */
function made(kind: string, seed: number): MadeFiles {
  const random = randomFrom(seed)
  const files: MadeFiles = {}
  for (const extra of MAYBE) if (random(3) === 0) Object.assign(files, extra(random))
  return { ...files, ...KINDS[kind]!(random) }
}

/** A repository of a loader's kind. */
export interface MadeRepository {
  readonly id: string
  readonly kind: string
  readonly files: readonly (FakeRepoFile & { readonly content: Uint8Array })[]
}

/** Small repositories of all kinds by turns; equal arguments give equal bytes. The last of more than one round has more small files than an import keeps. */
export function madeRepositories(count: number, seed = 1): MadeRepository[] {
  const kinds = Object.keys(KINDS)
  return Array.from({ length: count }, (_, i) => {
    const kind = kinds[i % kinds.length]!
    const files = made(kind, seed * 1_000 + i)
    if (i === count - 1 && i >= kinds.length) for (let n = 0; n < 1_050; n++) files[`many/${n % 7}/${n}.txt`] = `${n}`
    return {
      id: `Made/${kind.replaceAll(' ', '-')}-${i}`,
      kind,
      files: Object.entries(files).map(([path, content]) => ({ path, content: Buffer.from(content) }))
    }
  })
}
