"""The hub's own client: argv[1] is a folder, the file of bench/model goes there. Its path is printed."""

import sys

from huggingface_hub import hf_hub_download

print(hf_hub_download("bench/model", "model-q4_0.gguf", local_dir=sys.argv[1]))
