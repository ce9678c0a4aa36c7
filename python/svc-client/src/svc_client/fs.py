"""`svc://ns/name:quant/FILE` for fsspec: the files of a model as a loader sees them, read-only.

Needs the extra `fsspec`; the scheme is known wherever it is installed.
"""

from __future__ import annotations

from typing import Any

from fsspec import AbstractFileSystem  # type: ignore[import-untyped, unused-ignore]

from fsspec.implementations.local import LocalFileSystem  # type: ignore[import-untyped, unused-ignore]

from ._client import Client
from .errors import NoMember, NotFound, Parse, UnknownRef


class SvcFileSystem(AbstractFileSystem):  # type: ignore[misc, unused-ignore]
    """Read-only. Bytes come from the store's own files, so that a local path costs no copy."""

    protocol = "svc"
    cachable = True

    def __init__(self, socket_path: str | None = None, **options: Any) -> None:
        super().__init__(**options)
        self._client = Client(socket_path)

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return path.removeprefix("svc://").strip("/")

    @staticmethod
    def _split(path: str) -> tuple[str, str]:
        """The reference and the name of the file, which is empty for the model."""
        parts = path.split("/", 2)
        if len(parts) < 2:
            raise FileNotFoundError(f"{path} names no model: svc://ns/name:quant/FILE")
        return "/".join(parts[:2]), parts[2] if len(parts) > 2 else ""

    def _files(self, path: str) -> dict[str, dict[str, Any]]:
        """Files below a path, by their whole name."""
        ref, name = self._split(path)
        try:
            files = self._client.files(ref)
        except (NoMember, NotFound, Parse, UnknownRef) as error:
            raise FileNotFoundError(f"{path}: {error}") from error
        return {
            f"{ref}/{file.name}": {
                "name": f"{ref}/{file.name}",
                "size": file.size,
                "type": "file",
                "local_path": file.path,
                "sha256": file.digest,
            }
            for file in files
            if not name or file.name == name or file.name.startswith(f"{name}/")
        }

    def ls(self, path: str, detail: bool = True, **options: Any) -> list[Any]:
        path = self._strip_protocol(path)
        entries: dict[str, dict[str, Any]] = {}
        found = self._files(path)
        if not found:
            raise FileNotFoundError(path)
        for name, file in found.items():
            if name == path:
                return [file] if detail else [name]
            child, _, rest = name[len(path) + 1 :].partition("/")
            whole = f"{path}/{child}"
            entries[whole] = {"name": whole, "size": 0, "type": "directory"} if rest else file
        return list(entries.values()) if detail else list(entries)

    def info(self, path: str, **options: Any) -> dict[str, Any]:
        path = self._strip_protocol(path)
        found = self._files(path)
        if path in found:
            return found[path]
        if not found:
            raise FileNotFoundError(path)
        return {"name": path, "size": 0, "type": "directory"}

    def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        if mode != "rb":
            raise OSError(f"{path}: models are read-only")
        facts = self.info(path)
        if facts["type"] != "file":
            raise IsADirectoryError(path)
        return LocalFileSystem().open(facts["local_path"], "rb")

    def ukey(self, path: str) -> str:
        facts = self.info(path)
        return str(facts.get("sha256") or facts["name"])
