"""A helper for transformers, and libraries with its `from_pretrained`: no environment variable, no hub.

    >>> from transformers import AutoModelForCausalLM, AutoTokenizer
    >>> from svc_client.transformers import load
    >>> model = load(AutoModelForCausalLM, "acme/model-7b:bf16")
    >>> tokenizer = load(AutoTokenizer, "acme/model-7b:bf16")
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from ._client import Client

T_co = TypeVar("T_co", covariant=True)


class Pretrained(Protocol[T_co]):
    """A class of transformers, peft, diffusers or sentence-transformers."""

    def from_pretrained(self, name: str, /, **options: Any) -> T_co: ...


def load(cls: Pretrained[T_co], ref: str, *, client: Client | None = None, **options: Any) -> T_co:
    """What `cls.from_pretrained` makes of a model of the store. A GGUF is named by `gguf_file`, and
    nothing is asked of the hub.

    :param ref: `ns/name:quant`; as for `Client.path`, a lone name will do
    :param options: those of `from_pretrained`
    :raises SvcError: there is no such model here, or it is not complete (`Client.pull` it)
    """
    store = Client() if client is None else client
    path = store.path(ref)
    given: dict[str, Any] = {"local_files_only": True}
    if path.suffix == ".gguf":
        given["gguf_file"] = path.name
        path = path.parent
    return cls.from_pretrained(str(path), **{**given, **options})


__all__ = ["load"]
