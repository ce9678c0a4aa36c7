"""Small random models of the kinds that loaders know, written by the libraries that load them, and what these libraries compute from a
folder, or from the name of a repository at the hub that HF_ENDPOINT names. One request a line on stdin, one answer a line on stdout.

`make KIND FOLDER` writes one. `load KIND FOLDER` answers with numbers: the same files give the same ones. `versions` says who loads.
"""

import importlib.metadata
import json
import os
import shutil
import sys
import textwrap

import huggingface_hub
import numpy
import peft
import PIL.Image
import safetensors.torch
import sentence_transformers
from sentence_transformers.sentence_transformer import modules
import tokenizers
import torch
import transformers

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
torch.set_num_threads(1)

TEXT = "hello world of models"
WORDS = ["[UNK]", "[PAD]", "[CLS]", "[SEP]", "[MASK]", "<image>", "hello", "world", "of", "models"]
LLAMA = dict(
    vocab_size=64,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=2,
    max_position_embeddings=64,
)
# what a loader that does not read it would get wrong
GENERATION = dict(do_sample=True, temperature=3.0, top_k=13, max_new_tokens=12, eos_token_id=[62, 63], pad_token_id=1)


def words(special=()):
    """A tokenizer that writes tokenizer.json and its configuration."""
    backend = tokenizers.Tokenizer(tokenizers.models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    backend.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    made = transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]", **dict(special)
    )
    made.chat_template = "{% for m in messages %}{{ m.content }} {% endfor %}"
    return made


def numbers(tensor):
    return [float(each) for each in tensor.detach().double().flatten().tolist()]


def causal(config, folder, **how):
    model = transformers.AutoModelForCausalLM.from_config(config)
    model.generation_config = transformers.GenerationConfig(**GENERATION)
    model.save_pretrained(folder, **how)
    words().save_pretrained(folder)
    return model


def written(model, **inputs):
    torch.manual_seed(5)
    with torch.no_grad():
        return [float(each) for each in model.generate(**inputs).flatten().tolist()]


def load_causal(folder):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    chat = tokenizer.apply_chat_template([{"role": "user", "content": TEXT}], tokenize=False)
    inputs = tokenizer(chat, return_tensors="pt")
    with torch.no_grad():
        logits = model(**inputs).logits
    return numbers(logits) + written(model, **inputs)


def make_llama(folder):
    causal(transformers.LlamaConfig(**LLAMA), folder)


def make_sharded(folder):
    causal(transformers.LlamaConfig(**LLAMA), folder, max_shard_size="40KB")
    if not os.path.exists(os.path.join(folder, "model.safetensors.index.json")):
        raise RuntimeError("the model has one shard")


def make_qwen(folder):
    """With a tokenizer of bytes in vocab.json and merges.txt alone, as Qwen's first ones had it."""
    causal(transformers.Qwen3Config(**{**LLAMA, "vocab_size": 300, "head_dim": 16}), folder)
    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: i for i, token in enumerate([*letters, "he", "ll", "hell", "<|endoftext|>", "<|im_end|>"])}
    merges = [("h", "e"), ("l", "l"), ("he", "ll")]
    tokenizer = transformers.Qwen2Tokenizer(vocab=vocabulary, merges=merges)
    tokenizer.chat_template = "{% for m in messages %}{{ m.content }}{% endfor %}"
    tokenizer.save_pretrained(folder)
    os.remove(os.path.join(folder, "tokenizer.json"))
    with open(os.path.join(folder, "vocab.json"), "w") as file:
        json.dump(vocabulary, file)
    with open(os.path.join(folder, "merges.txt"), "w") as file:
        file.write("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in merges))


def make_lora(folder):
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA))
    lora = peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"], init_lora_weights=False, task_type="CAUSAL_LM")
    peft.get_peft_model(model, lora).save_pretrained(folder)
    words().save_pretrained(folder)


def load_lora(folder):
    """On a base of its own, which the seed decides."""
    torch.manual_seed(9)
    base = transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA)).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    inputs = tokenizer(TEXT, return_tensors="pt")
    with torch.no_grad():
        bare = base(**inputs).logits.clone()
        adapted = peft.PeftModel.from_pretrained(base, folder).eval()(**inputs).logits
    if torch.equal(bare, adapted):
        raise RuntimeError("the adapter changes nothing")
    return numbers(adapted)


def make_sentences(folder):
    """Pooling by the first token, a dense layer and normalization: none is what a loader takes by default."""
    inner = f"{folder}-bert"
    config = transformers.BertConfig(
        vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, max_position_embeddings=64
    )
    transformers.BertModel(config).save_pretrained(inner)
    words().save_pretrained(inner)
    transformer = modules.Transformer(inner, max_seq_length=3)
    pooling = modules.Pooling(transformer.get_embedding_dimension(), pooling_mode="cls")
    dense = modules.Dense(in_features=32, out_features=8, activation_function=torch.nn.Tanh())
    parts = [transformer, pooling, dense, modules.Normalize()]
    model = sentence_transformers.SentenceTransformer(modules=parts, prompts={"query": "hello "}, default_prompt_name="query")
    model.save_pretrained(folder)
    shutil.rmtree(inner)


def load_sentences(folder):
    model = sentence_transformers.SentenceTransformer(folder, device="cpu")
    return [float(each) for each in model.encode([TEXT, "models of models"]).flatten()]


def make_diffusers(folder):
    """The parts that transformers writes, and beside them what a pipeline has."""
    text = transformers.CLIPTextConfig(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, max_position_embeddings=16
    )
    encoder = transformers.CLIPTextModel(text)
    encoder.save_pretrained(os.path.join(folder, "text_encoder"))
    words().save_pretrained(os.path.join(folder, "tokenizer"))
    documents = {
        "model_index.json": {
            "_class_name": "StableDiffusionPipeline",
            "scheduler": ["diffusers", "DDIMScheduler"],
            "text_encoder": ["transformers", "CLIPTextModel"],
            "tokenizer": ["transformers", "PreTrainedTokenizerFast"],
            "unet": ["diffusers", "UNet2DConditionModel"],
            "vae": ["diffusers", "AutoencoderKL"],
        },
        "scheduler/scheduler_config.json": {"_class_name": "DDIMScheduler", "num_train_timesteps": 10},
        "unet/config.json": {"_class_name": "UNet2DConditionModel", "sample_size": 8},
        "vae/config.json": {"_class_name": "AutoencoderKL", "latent_channels": 4},
    }
    for name, document in documents.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            json.dump(document, file, indent=2)
    for part in ["unet", "vae"]:
        weights = {"conv_in.weight": torch.rand(4, 4)}
        safetensors.torch.save_file(weights, os.path.join(folder, part, "diffusion_pytorch_model.safetensors"))


def load_diffusers(folder):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, subfolder="tokenizer")
    encoder = transformers.CLIPTextModel.from_pretrained(folder, subfolder="text_encoder").eval()
    with torch.no_grad():
        return numbers(encoder(**tokenizer(TEXT, return_tensors="pt")).last_hidden_state)


def make_whisper(folder):
    config = transformers.WhisperConfig(
        vocab_size=64,
        d_model=32,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        num_mel_bins=16,
        max_source_positions=50,
        max_target_positions=32,
        decoder_start_token_id=2,
        bos_token_id=2,
        eos_token_id=3,
        pad_token_id=1,
    )
    model = transformers.WhisperForConditionalGeneration(config)
    model.generation_config = transformers.GenerationConfig(
        max_new_tokens=10, suppress_tokens=[4, 5, 6], decoder_start_token_id=2, eos_token_id=3, pad_token_id=1, no_timestamps_token_id=60
    )
    model.save_pretrained(folder)
    # 100 frames of mel, the encoder halves them
    transformers.WhisperFeatureExtractor(feature_size=16, chunk_length=1, sampling_rate=16_000).save_pretrained(folder)
    words().save_pretrained(folder)


def load_whisper(folder):
    features = transformers.AutoFeatureExtractor.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.WhisperForConditionalGeneration.from_pretrained(folder).eval()
    sound = numpy.sin(numpy.arange(16_000) / 9).astype("float32")
    heard = features(sound, sampling_rate=16_000, return_tensors="pt").input_features
    with torch.no_grad():
        logits = model(input_features=heard, decoder_input_ids=torch.tensor([[2, 6]])).logits
    return numbers(logits) + written(model, input_features=heard) + [float(len(tokenizer))]


def make_vision(folder):
    config = transformers.LlavaConfig(
        vision_config=transformers.CLIPVisionConfig(
            hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, image_size=28, patch_size=14
        ),
        text_config=transformers.LlamaConfig(**LLAMA),
        image_token_index=WORDS.index("<image>"),
        vision_feature_layer=-1,
        image_seq_length=4,
    )
    model = transformers.LlavaForConditionalGeneration(config)
    model.generation_config = transformers.GenerationConfig(**GENERATION)
    model.save_pretrained(folder)
    side = {"height": 28, "width": 28}
    pictures = transformers.CLIPImageProcessorPil(size={"shortest_edge": 28}, crop_size=side, image_mean=[0.1, 0.2, 0.3])
    tokenizer = words({"extra_special_tokens": {"image_token": "<image>"}})
    template = "{% for m in messages %}<image> {{ m.content }} {% endfor %}"
    transformers.LlavaProcessor(
        pictures,
        tokenizer,
        patch_size=14,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=template,
    ).save_pretrained(folder)


def load_vision(folder):
    processor = transformers.AutoProcessor.from_pretrained(folder)
    model = transformers.LlavaForConditionalGeneration.from_pretrained(folder).eval()
    picture = PIL.Image.fromarray((numpy.arange(40 * 40 * 3) % 251).astype("uint8").reshape(40, 40, 3))
    prompt = processor.apply_chat_template([{"role": "user", "content": TEXT}])
    inputs = processor(images=picture, text=prompt, return_tensors="pt")
    with torch.no_grad():
        logits = model(**inputs).logits
    return numbers(logits) + written(model, **inputs)


CODE = {
    "configuration_acme.py": """
        from transformers import PretrainedConfig
        from .utils_acme import WIDTH

        class AcmeConfig(PretrainedConfig):
            model_type = "acme"

            def __init__(self, width=WIDTH, **more):
                self.width = width
                super().__init__(**more)
        """,
    "modeling_acme.py": """
        import torch
        from transformers import PreTrainedModel
        from .configuration_acme import AcmeConfig
        from .utils_acme import twice

        class AcmeModel(PreTrainedModel):
            config_class = AcmeConfig

            def __init__(self, config):
                super().__init__(config)
                self.layer = torch.nn.Linear(config.width, config.width)
                self.post_init()

            def forward(self, x):
                return twice(self.layer(x))
        """,
    "utils_acme.py": """
        WIDTH = 8

        def twice(x):
            return 2 * x
        """,
}


def make_code(folder):
    os.makedirs(folder)
    for name, text in CODE.items():
        with open(os.path.join(folder, name), "w") as file:
            file.write(textwrap.dedent(text).lstrip())
    config = {
        "model_type": "acme",
        "architectures": ["AcmeModel"],
        "auto_map": {"AutoConfig": "configuration_acme.AcmeConfig", "AutoModel": "modeling_acme.AcmeModel"},
        "width": 8,
    }
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(config, file, indent=2)
    weights = {"layer.weight": torch.rand(8, 8), "layer.bias": torch.rand(8)}
    safetensors.torch.save_file(weights, os.path.join(folder, "model.safetensors"), metadata={"format": "pt"})


def load_code(folder):
    model = transformers.AutoModel.from_pretrained(folder, trust_remote_code=True).eval()
    with torch.no_grad():
        return numbers(model(torch.ones(1, 8)))


def load_gguf(path):
    folder, file = os.path.split(path)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, gguf_file=file).eval()
    with torch.no_grad():
        return numbers(model(torch.tensor([[1, 2, 3]])).logits)


def fetch(repo):
    return huggingface_hub.snapshot_download(repo)


KINDS = {
    "llama": (make_llama, load_causal),
    "qwen": (make_qwen, load_causal),
    "sharded": (make_sharded, load_causal),
    "lora": (make_lora, load_lora),
    "sentence-transformers": (make_sentences, load_sentences),
    "diffusers": (make_diffusers, load_diffusers),
    "whisper": (make_whisper, load_whisper),
    "vision-language": (make_vision, load_vision),
    "remote code": (make_code, load_code),
    "gguf": (None, load_gguf),
}


def make(kind, folder):
    torch.manual_seed(1)
    KINDS[kind][0](folder)


def load(kind, folder):
    return KINDS[kind][1](folder)


def versions(*names):
    return {name: importlib.metadata.version(name) for name in names}


WORK = {"make": make, "load": load, "fetch": fetch, "versions": versions}

for line in sys.stdin:
    work, *rest = json.loads(line)
    try:
        answer = {"value": WORK[work](*rest)}
    except Exception as error:  # whatever a loader throws is the answer
        answer = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), flush=True)
