"""The plugin of vLLM against what vLLM documents: an entry point of `vllm.general_plugins`, called in each
process, perhaps several times, within `EngineArgs.__post_init__` at the latest. vLLM itself is not
needed: `arg_utils` here has the calls of its engine/arg_utils.py of 2026 that touch the model.
"""

from __future__ import annotations

import os
import sys
import types
import unittest
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any

from svc_client import Client, errors, vllm

REF = os.environ.get("SVC_TEST_REF", "")


def engine(offline: bool = False, load: Any = None) -> types.ModuleType:
    """`vllm.engine.arg_utils`, which loads the plugins by `load` as it makes arguments."""
    arg_utils = types.ModuleType("vllm.engine.arg_utils")

    def get_model_path(model: str, revision: str | None = None) -> str:
        if not os.path.exists(model):
            raise ValueError(f"Repo id must be in the form 'namespace/repo_name': {model}")
        return model

    @dataclass
    class EngineArgs:
        model: str = "Qwen/Qwen3-0.6B"
        served_model_name: str | list[str] | None = None
        tokenizer: str | None = None
        hf_config_path: str | None = None

        def __post_init__(self) -> None:
            (load or vllm.register)()
            if offline:
                self.model = arg_utils.get_model_path(self.model, None)

        def create_model_config(self) -> dict[str, Any]:
            return {"model": self.model, "tokenizer": self.tokenizer or self.model}

        def create_engine_config(self, usage: str | None = None) -> dict[str, Any]:
            return self.create_model_config()

    class AsyncEngineArgs(EngineArgs):
        pass

    arg_utils.get_model_path = get_model_path  # type: ignore[attr-defined]
    arg_utils.EngineArgs = EngineArgs  # type: ignore[attr-defined]
    arg_utils.AsyncEngineArgs = AsyncEngineArgs  # type: ignore[attr-defined]
    package = types.ModuleType("vllm.engine")
    package.arg_utils = arg_utils  # type: ignore[attr-defined]
    sys.modules.update({"vllm": types.ModuleType("vllm"), "vllm.engine": package, "vllm.engine.arg_utils": arg_utils})
    return arg_utils


class Plugin(unittest.TestCase):
    def setUp(self) -> None:
        self.addCleanup(lambda: [sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "vllm"])

    def test_is_an_entry_point(self) -> None:
        found = [each for each in entry_points(group="vllm.general_plugins") if each.name == "svc"]
        if not found:
            self.skipTest("the client is not installed")
        self.assertIs(found[0].load(), vllm.register)

    def test_other_models_are_left_alone(self) -> None:
        arguments = engine().EngineArgs(model="Qwen/Qwen3-0.6B", tokenizer="/models/tokenizer")
        for _ in range(3):
            vllm.register()
        config = arguments.create_engine_config(usage="server")
        self.assertEqual(config, {"model": "Qwen/Qwen3-0.6B", "tokenizer": "/models/tokenizer"})
        self.assertIsNone(arguments.served_model_name)

    @unittest.skipUnless(REF, "SVC_TEST_REF names no model")
    def test_a_model_here_is_its_path(self) -> None:
        path = str(Client().path(REF))
        for offline in (False, True):
            for typed in (f"svc://{REF}", f"svc:///{REF}"):
                with self.subTest(typed, offline=offline):
                    arg_utils = engine(offline)
                    arguments = arg_utils.AsyncEngineArgs(model=typed)
                    config = arguments.create_engine_config(usage="server")
                    self.assertEqual(config, {"model": path, "tokenizer": path})
        # a server that was told a name keeps it; else the name is what was typed
        again = engine().EngineArgs(model=f"svc://{REF}", served_model_name="mine")
        again.create_model_config()
        self.assertEqual((again.model, again.served_model_name), (path, "mine"))
        named = arg_utils.EngineArgs(model=f"svc://{REF}")
        self.assertEqual((named.model, named.served_model_name), (path, f"svc://{REF}"))

    @unittest.skipUnless(REF, "SVC_TEST_REF names no model")
    def test_an_absent_model_is_told(self) -> None:
        arguments = engine().EngineArgs(model="svc://nobody/nothing:q8_0")
        with self.assertRaises(errors.UnknownRef):
            arguments.create_engine_config()


if __name__ == "__main__":
    unittest.main()
