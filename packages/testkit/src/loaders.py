"""The loaders of the Python world, at work for a test: one request a line on stdin, one answer a line on stdout, both JSON.

`make` writes a small random model as transformers, tokenizers and peft themselves write one: shards with an index, tokenizer,
chat template, a LoRA. The others load what they are told to, without a network, and answer with what came of it.
"""

import hashlib
import json
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

import gguf
import peft
import safetensors
import tokenizers
import torch
import transformers

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
torch.set_num_threads(1)

WORDS = ["[UNK]", "hello", "world", "of", "models"]
TEXT = "hello world of models"


def make(folder):
    torch.manual_seed(1)
    config = transformers.LlamaConfig(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=64,
    )
    model = transformers.LlamaForCausalLM(config)
    model.save_pretrained(folder, max_shard_size="40KB")
    words = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]")
    )
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]")
    tokenizer.chat_template = "{% for m in messages %}{{ m.content }} {% endfor %}"
    tokenizer.save_pretrained(folder)
    lora = peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"], init_lora_weights=False)
    peft.get_peft_model(model, lora).save_pretrained(os.path.join(folder, "lora"))
    return sorted(os.path.relpath(os.path.join(at, name), folder) for at, _, names in os.walk(folder) for name in names)


def said(model, ids):
    """What a model computes: the same weights give the same bits."""
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits
    return hashlib.sha256(logits.numpy().tobytes()).hexdigest()


def load(folder, adapter=None, cache=None):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, cache_dir=cache)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, cache_dir=cache)
    if adapter is not None:
        model = peft.PeftModel.from_pretrained(model, adapter)
    ids = tokenizer(TEXT)["input_ids"]
    chat = tokenizer.apply_chat_template([{"role": "user", "content": TEXT}], tokenize=False)
    return {"ids": ids, "chat": chat, "said": said(model.eval(), ids)}


def load_gguf(folder, file):
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, gguf_file=file)
    return {"said": said(model.eval(), [1, 2, 3]), "layers": model.config.num_hidden_layers}


def read_gguf(path):
    return {"tensors": [str(tensor.name) for tensor in gguf.GGUFReader(path).tensors]}


def read_safetensors(path):
    with safetensors.safe_open(path, framework="pt") as file:
        return {name: list(file.get_tensor(name).shape) for name in file.keys()}


WORK = {"make": make, "load": load, "load_gguf": load_gguf, "read_gguf": read_gguf, "read_safetensors": read_safetensors}

for line in sys.stdin:
    work, *rest = json.loads(line)
    try:
        answer = {"value": WORK[work](*rest)}
    except Exception as error:  # whatever a loader throws is the answer
        answer = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), flush=True)
