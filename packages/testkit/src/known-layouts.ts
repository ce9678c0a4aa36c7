import type { MadeRepository } from './made-repositories.ts'
import { makeGguf, makeSafetensors, seededBytes } from './models.ts'

/** More than a companion may have. */
const LARGE_BYTES = (1 << 20) + 1
const EVERYWHERE = '.gitattributes README.md'
const TOKENIZER = 'tokenizer.json tokenizer_config.json special_tokens_map.json'
const QWEN_TOKENIZER = `${TOKENIZER} added_tokens.json vocab.json merges.txt chat_template.jinja`
const STANDARD = `${EVERYWHERE} config.json generation_config.json model.safetensors`

/** `stem-00001-of-0000n.ending` for each part. */
const shards = (stem: string, count: number, ending: string, first = 1): string =>
  Array.from({ length: count }, (_, i) => `${stem}-0000${i + first}-of-0000${count + first - 1}.${ending}`).join(' ')

/** Names of files as repositories of the hub have them. With `!` in front: larger than a companion may be. */
const LAYOUTS: Readonly<Record<string, string>> = {
  'ggml-org/Qwen2.5-Omni-3B-GGUF': `${EVERYWHERE} Qwen2.5-Omni-3B-Q4_K_M.gguf Qwen2.5-Omni-3B-Q8_0.gguf Qwen2.5-Omni-3B-f16.gguf
    mmproj-Qwen2.5-Omni-3B-Q8_0.gguf mmproj-Qwen2.5-Omni-3B-f16.gguf`,
  'unsloth/gemma-3-27b-it-GGUF': `${EVERYWHERE} ${shards('BF16/gemma-3-27b-it-BF16', 2, 'gguf')} config.json params template
    gemma-3-27b-it-Q4_K_M.gguf gemma-3-27b-it-UD-Q4_K_XL.gguf gemma-3-27b-it-UD-IQ1_S.gguf imatrix_unsloth.dat imatrix_unsloth.gguf_file
    mmproj-BF16.gguf mmproj-F16.gguf mmproj-F32.gguf`,
  'unsloth/Qwen3-235B-A22B-GGUF': `${EVERYWHERE} config.json UD-IQ2_M/Qwen3-235B-A22B-UD-IQ2_M.gguf
    ${shards('UD-Q4_K_XL/Qwen3-235B-A22B-UD-Q4_K_XL', 3, 'gguf')} ${shards('Q4_K_M/Qwen3-235B-A22B-Q4_K_M', 3, 'gguf')}`,
  'bartowski/Llama-3.3-70B-Instruct-GGUF': `${EVERYWHERE} Llama-3.3-70B-Instruct-Q4_K_M.gguf Llama-3.3-70B-Instruct-Q4_0_4_8.gguf
    Llama-3.3-70B-Instruct-IQ2_XXS.gguf ${shards('Llama-3.3-70B-Instruct-Q8_0/Llama-3.3-70B-Instruct-Q8_0', 2, 'gguf')}
    ${shards('Llama-3.3-70B-Instruct-f16/Llama-3.3-70B-Instruct-f16', 4, 'gguf')} !Llama-3.3-70B-Instruct.imatrix`,
  'mradermacher/Mistral-Large-i1-GGUF': `${EVERYWHERE} Mistral-Large.i1-Q4_K_M.gguf Mistral-Large.i1-IQ1_S.gguf imatrix.dat
    !Mistral-Large.i1-Q6_K.gguf.part1of2 !Mistral-Large.i1-Q6_K.gguf.part2of2`,
  'TheBloke/Mistral-7B-GPTQ': `${STANDARD} ${TOKENIZER} quantize_config.json tokenizer.model`,
  'hugging-quants/Llama-3.1-8B-AWQ': `${STANDARD} ${TOKENIZER} quant_config.json USE_POLICY.md LICENSE
    awq_model_w4_g64.pt ${shards('variants/g64/model', 2, 'safetensors')} variants/g64/model.safetensors.index.json`,
  'Qwen/Qwen2-VL-2B-Instruct': `${EVERYWHERE} ${QWEN_TOKENIZER} LICENSE config.json generation_config.json preprocessor_config.json
    video_preprocessor_config.json chat_template.json ${shards('model', 2, 'safetensors')} model.safetensors.index.json`,
  'nvidia/Nested-VL-Remote': `${STANDARD} ${TOKENIZER} configuration_nested.py modeling_nested.py processing_nested.py
    tokenization_nested_fast.py image_processing_nested.py vision/__init__.py vision/tower.py vision/layers/__init__.py
    vision/layers/attention.py audio/__init__.py audio/modeling_audio.py audio/config.json custom_generate/generate.py
    custom_generate/requirements.txt examples/1.PNG assets/logo.svg .gitignore vision/.clang-format`,
  'openai/gpt-oss-20b': `${EVERYWHERE} ${TOKENIZER} LICENSE USAGE_POLICY chat_template.jinja config.json generation_config.json
    ${shards('model', 3, 'safetensors', 0)} model.safetensors.index.json original/model.safetensors original/config.json
    original/dtypes.json !metal/model.bin`,
  'mistralai/Mixtral-8x7B-Instruct-v0.1': `${EVERYWHERE} ${TOKENIZER} config.json generation_config.json tokenizer.model
    ${shards('model', 4, 'safetensors')} model.safetensors.index.json !consolidated.00.pt tekken.json params.json`,
  'deepseek-ai/DeepSeek-V3-tiny': `${EVERYWHERE} LICENSE-CODE LICENSE-MODEL README_WEIGHTS.md config.json configuration_deepseek.py
    modeling_deepseek.py figures/benchmark.png inference/configs/config_671B.json inference/convert.py inference/kernel.py
    inference/requirements.txt ${shards('model', 3, 'safetensors')} model.safetensors.index.json tokenizer.json tokenizer_config.json`,
  'Xenova/all-MiniLM-L6-v2': `${EVERYWHERE} ${TOKENIZER} config.json quantize_config.json vocab.txt model.safetensors
    !onnx/model.onnx onnx/model_quantized.onnx onnx/model_q4f16.onnx !onnx/model.onnx_data`,
  'google/embeddinggemma-300m': `${STANDARD} ${TOKENIZER} modules.json config_sentence_transformers.json sentence_bert_config.json
    1_Pooling/config.json 2_Dense/config.json 2_Dense/model.safetensors 3_Dense/config.json 3_Dense/model.safetensors tokenizer.model
    special_tokens_map.json added_tokens.json`,
  'BAAI/bge-m3': `${EVERYWHERE} ${TOKENIZER} config.json config_sentence_transformers.json sentence_bert_config.json modules.json
    1_Pooling/config.json sentencepiece.bpe.model !pytorch_model.bin !colbert_linear.pt sparse_linear.pt !imgs/bm25.jpg imgs/mkqa.jpg
    model.safetensors !onnx/model.onnx_data onnx/model.onnx onnx/config.json onnx/sentencepiece.bpe.model onnx/Constant_7_attr__value`,
  'minishlab/potion-base-8M': `${EVERYWHERE} config.json modules.json model.safetensors tokenizer.json 0_StaticEmbedding/model.safetensors
    0_StaticEmbedding/tokenizer.json`,
  'acme/Llama-LoRA-tokens': `${EVERYWHERE} ${QWEN_TOKENIZER} adapter_config.json adapter_model.safetensors training_args.bin trainer_log.jsonl
    all_results.json checkpoint-500/adapter_config.json checkpoint-500/adapter_model.safetensors checkpoint-500/tokenizer.json
    runs/Nov01/events.out.tfevents.0`,
  'timm/vit_tiny_patch16_224.augreg': `${EVERYWHERE} config.json model.safetensors !pytorch_model.bin`,
  'laion/CLIP-ViT-B-32': `${STANDARD} ${TOKENIZER} open_clip_config.json open_clip_model.safetensors !open_clip_pytorch_model.bin
    preprocessor_config.json vocab.json merges.txt`,
  'openai/whisper-tiny': `${STANDARD} ${TOKENIZER} added_tokens.json normalizer.json preprocessor_config.json vocab.json merges.txt
    !pytorch_model.bin !flax_model.msgpack !tf_model.h5 model.fp32-00001-of-00002.safetensors model.fp32-00002-of-00002.safetensors
    model.safetensors.index.fp32.json`,
  'stabilityai/sdxl-base': `${EVERYWHERE} LICENSE.md model_index.json sd_xl_base_1.0.safetensors sd_xl_offset_example-lora_1.0.safetensors
    scheduler/scheduler_config.json text_encoder/config.json text_encoder/model.safetensors text_encoder/model.fp16.safetensors
    !text_encoder/openvino_model.bin text_encoder/openvino_model.xml text_encoder_2/config.json text_encoder_2/model.safetensors
    tokenizer/merges.txt tokenizer/vocab.json tokenizer/tokenizer_config.json tokenizer_2/merges.txt tokenizer_2/vocab.json
    unet/config.json unet/diffusion_pytorch_model.safetensors unet/diffusion_pytorch_model.fp16.safetensors
    vae/config.json vae/diffusion_pytorch_model.safetensors vae_1_0/config.json vae_1_0/diffusion_pytorch_model.safetensors 01.png`,
  'black-forest-labs/FLUX.1-tiny': `${EVERYWHERE} LICENSE.md model_index.json ae.safetensors flux1-dev.safetensors dev_grid.jpg
    scheduler/scheduler_config.json text_encoder/config.json ${shards('text_encoder/model', 2, 'safetensors')}
    text_encoder/model.safetensors.index.json tokenizer/spiece.model tokenizer/tokenizer.json transformer/config.json
    ${shards('transformer/diffusion_pytorch_model', 3, 'safetensors')} transformer/diffusion_pytorch_model.safetensors.index.json`,
  'Comfy-Org/Wan_2.1_ComfyUI_repackaged': `${EVERYWHERE} split_files/diffusion_models/wan2.1_t2v_1.3B_fp16.safetensors
    split_files/text_encoders/umt5_xxl_fp8_e4m3fn_scaled.safetensors split_files/vae/wan_2.1_vae.safetensors example.json`,
  'mlx-community/Qwen3-4bit': `${STANDARD} ${QWEN_TOKENIZER} model.safetensors.index.json`,
  'gpt2-like': `config.json generation_config.json generation_config_for_text_generation.json model.safetensors merges.txt vocab.json
    tokenizer.json tokenizer_config.json 64.tflite !rust_model.ot !pytorch_model.bin`
}

/** Names with what shells, URLs, globs and file systems treat as special. */
const ODD: readonly string[] = [
  'config.json',
  'model.safetensors',
  'My Model (final) v2.safetensors',
  '--help.safetensors',
  '-Q4_K_M.gguf',
  '100%.gguf',
  '%2e%2e%2fescape.txt',
  '%00.json',
  'a%20b.txt',
  'a b.txt',
  '+plus&amp;=#?.txt',
  '[glob]*{a,b}.txt',
  '~/.bashrc',
  '$HOME/`id`.txt',
  'é-nfc.txt',
  'é-nfd.txt'.normalize('NFD'),
  'e\u0301/b.gguf',
  'tab and  blanks .txt',
  '.hidden/.deeper/x.json',
  '...',
  'dot./x.txt',
  'nested/-rf/--/x.txt',
  'quote\'"s.json',
  'モデル/重み-q8_0.gguf',
  '🤗/🧨.safetensors',
  '\u200bzero-width.txt',
  'CON',
  'aux.json',
  'Config.JSON',
  'CONFIG.json/x',
  'MODEL.GGUF'
]

/** What a name promises, of its own bytes each. */
function contentOf(path: string, seed: number): Uint8Array {
  if (path.endsWith('.gguf')) {
    const shape = path.includes('mmproj') ? [64] : [32]
    return makeGguf({ tensors: [{ name: 'a.weight', shape, type: 'Q8_0' }], seed })
  }
  if (path.endsWith('.safetensors'))
    return makeSafetensors({ tensors: [{ name: 'a.weight', dtype: 'BF16', shape: [8, 4] }], seed })
  if (path === 'config.json') return Buffer.from(`{"model_type": "made", "seed": ${seed}}\n`)
  if (path.endsWith('.json')) return Buffer.from(`{\r\n  "seed": ${seed}}`)
  return seededBytes(seed % 2_000, seed)
}

/** Small repositories with the names of files that well-known ones of the hub have; the last one has odd names. */
export function knownLayouts(): MadeRepository[] {
  const all: [string, readonly string[]][] = [
    ...Object.entries(LAYOUTS).map(([id, names]): [string, readonly string[]] => [
      id,
      [...new Set(names.split(/\s+/))]
    ]),
    ['Odd/Names', ODD]
  ]
  return all.map(([id, names], i) => ({
    id,
    kind: id,
    files: names.map((name, j) => {
      const seed = i * 1_000 + j + 1
      return name.startsWith('!')
        ? { path: name.slice(1), content: seededBytes(LARGE_BYTES, seed) }
        : { path: name, content: contentOf(name, seed) }
    })
  }))
}
