"""`vllm serve svc://ns/name:quant`: the plugin of vLLM (entry point `vllm.general_plugins`).

vLLM calls `register` in each of its processes before it starts any work, perhaps several times.
From then on, a model, tokenizer or configuration that begins with `svc://` is the path of that
model here; what the server calls the model stays as it was typed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._client import Client

SCHEME = "svc://"
_FIELDS = ("model", "tokenizer", "hf_config_path")
_METHODS = ("__post_init__", "create_engine_config", "create_model_config")


def resolve(text: str) -> str:
    """The path of `svc://ns/name:quant`, which names a GGUF or a folder. Other text stays as it is.

    :raises SvcError: there is no such model here, or no daemon
    """
    if not text.startswith(SCHEME):
        return text
    return str(Client().path(text.removeprefix(SCHEME).lstrip("/")))


def register() -> None:
    """Makes the engine's arguments take `svc://`. A second call changes nothing."""
    from vllm.engine import arg_utils  # type: ignore[import-not-found, unused-ignore]

    arguments = arg_utils.EngineArgs
    if getattr(arguments, "_takes_svc", False):
        return
    arguments._takes_svc = True
    for name in _METHODS:
        method = getattr(arguments, name, None)
        if method is not None:
            setattr(arguments, name, _after_resolving(method))
    # asked for in the very call that loads the plugins, if the hub is not to be asked
    if hasattr(arg_utils, "get_model_path"):
        given = arg_utils.get_model_path
        arg_utils.get_model_path = lambda model, *more: given(resolve(model), *more)


def _after_resolving(method: Callable[..., Any]) -> Callable[..., Any]:
    def resolved(self: Any, *args: Any, **options: Any) -> Any:
        for field in _FIELDS:
            typed = getattr(self, field, None)
            if not isinstance(typed, str) or not typed.startswith(SCHEME):
                continue
            if field == "model" and getattr(self, "served_model_name", None) is None:
                self.served_model_name = typed
            setattr(self, field, resolve(typed))
        return method(self, *args, **options)

    return resolved
