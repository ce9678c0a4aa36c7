"""The client."""

from __future__ import annotations

import io
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from ._api import Job, Routes, View, ViewFile
from ._json import decode, segment, wire
from ._progress import Watcher, watcher
from ._socket import default_socket_path, require_own_folder
from ._transport import Transport
from .blob import RawBlob
from .errors import AmbiguousSelector, NotFound, SvcError, UnknownRef, from_code

T = TypeVar("T")

_SHORT = re.compile(r"[^/:@\s]+/[^/:@\s]+([:@].*)?")
_HUB = re.compile(r"(?:(?:https?://)?(?:huggingface\.co|hf\.co)/)?([^/\s:@+#]+/[^/\s:@+#]+)(?::([^@+#\s]+))?")
_TYPED = re.compile(
    r"(?:(?:https?://)?(?:www\.)?(?:huggingface\.co|hf\.co)/)?((?:[^/\s:@+#]+/)?[^/\s:@+#]+)(?::([^/\s:@+#]+))?"
)
_SLOW = ("POST /v1/import/", "POST /v1/adopt")
"""They may have to list a repository before they answer."""
_UNBOUNDED = frozenset({"POST /v1/views", "POST /v1/snapshots", "DELETE /v1/jobs/{id}"})
"""They take as long as a copy takes."""
_REFERENCE = frozenset({"ref", "target"})


def canonical(ref: str) -> str:
    """`ns/name:quant` with its scheme. Anything else is for the daemon to check."""
    if _SHORT.fullmatch(ref) and not ref.startswith("svc:"):
        return f"svc:///{ref}"
    return ref


@dataclass(frozen=True)
class Request:
    """What is sent for the call of a route. No timeout: as long as it takes."""

    method: str
    path: str
    query: dict[str, Any] | None
    body: dict[str, Any] | None
    timeout: float | None


def request_of(route: str, asked: dict[str, Any], has_body: bool | None, timeout: float) -> Request:
    """`asked` are the arguments of a method of `Routes`, `self` among them."""
    given = {wire(name): value for name, value in asked.items() if name != "self"}
    method, path = route.split()
    for name in re.findall(r"{(\w+)}", path):
        path = path.replace(f"{{{name}}}", segment(given.pop(name)))
    for name in _REFERENCE & given.keys():
        if isinstance(given[name], str):
            given[name] = canonical(given[name])
    if has_body is None:
        has_body = method in ("POST", "PUT")
    times = 10 if route.startswith(_SLOW) else 1
    return Request(
        method,
        path,
        query=None if has_body else given,
        body=given if has_body else None,
        timeout=None if route in _UNBOUNDED else timeout * times,
    )


_ROLES = {"mmproj": "vision-projector", "draft": "draft"}


def _file_called(text: str, files: Sequence[ViewFile], target: str) -> ViewFile:
    """The file that a fragment names, by the rules of `svc path`: its name, its end, its role, its beginning."""
    rules: tuple[Callable[[ViewFile], bool], ...] = (
        lambda file: file.name == text,
        lambda file: file.name.endswith(f"/{text}"),
        lambda file: file.role is not None and file.role == _ROLES.get(text),
        lambda file: file.name.rpartition("/")[2].startswith(text),
    )
    for rule in rules:
        found = [file for file in files if rule(file)]
        # what lies beside the model comes second
        found = [file for file in found if file.kind != "companion"] or found
        if len(found) > 1 and all(file.part is not None for file in found):
            found = [file for file in found if file.part == 1] or found
        if len(found) == 1:
            return found[0]
        if found:
            names = [file.name for file in found]
            raise NotFound("E_NOT_FOUND", f"several files of {target} match {text}", candidates=names)
    names = [file.name for file in files]
    raise NotFound("E_NOT_FOUND", f"{target} has no file {text}", candidates=names)


class Client(Routes):
    """The daemon of this machine. Threads may share a client; it holds no connection.

    :param socket_path: used unchecked. By default it is found as `svc` finds it, and the folder
        of a default path must be the user's own (`UnsafeSocket`).
    :param timeout: seconds to wait for an answer; imports may take ten times as long

    Each method raises a subclass of `SvcError`: see `svc_client.errors`.
    """

    def __init__(self, socket_path: str | os.PathLike[str] | None = None, *, timeout: float = 60) -> None:
        self._timeout = timeout
        self._is_default = socket_path is None and not os.environ.get("SVC_SOCKET")
        found = default_socket_path(os.environ, os.geteuid()) if socket_path is None else os.fspath(socket_path)
        self._transport = Transport(found)

    @property
    def socket_path(self) -> str:
        return self._transport.socket_path

    def _ready(self) -> Transport:
        if self._is_default:
            require_own_folder(self.socket_path, os.geteuid())
        return self._transport

    def _call(
        self, route: str, result: type[T], asked: dict[str, Any], has_body: bool | None = None
    ) -> T:
        request = request_of(route, asked, has_body, self._timeout)
        answer = self._ready().json(
            request.method, request.path, query=request.query, body=request.body, timeout=request.timeout
        )
        value: T = decode(result, answer)
        return value

    def path(self, ref: str) -> Path:
        """The path to give to a runtime: the GGUF, the first shard of a split one, else the folder.
        `ref` may name a file of the model: `ns/name:quant#tokenizer.json`, `#mmproj` the projector,
        `#draft` the draft head; the beginning of a name will do. As for `svc path`, so will a lone
        name, the only quant, capitals and an address of the hub (`hf.co/Org/Name:Q8_0`).

        :raises UnknownRef: there is no such model here
        :raises NotFound: the model is not complete (`pull` it), or has no such file
        """
        target, _, name = ref.partition("#")
        view = self._view(target)
        if not name:
            return Path(view.loads or view.folder)
        return Path(_file_called(name, view.files, target).path)

    def _view(self, typed: str) -> View:
        try:
            return self.make_view(typed)
        except SvcError as error:
            known = self._name_here(typed) if error.code in ("E_PARSE", "E_UNKNOWN_REF") else typed
            if known == typed:
                raise
        return self.make_view(known)

    def _name_here(self, typed: str) -> str:
        """The reference of the one model here that a text means; else the text."""
        found = _TYPED.fullmatch(typed)
        if found is None:
            return typed
        repo, quant = found.group(1).lower(), found.group(2)
        entries = self.models().namespaces
        named = [entry for entry in entries if repo in (f"{entry.ns}/{entry.name}", entry.name)]
        there = [
            entry
            for entry in entries
            if any(member.origin and (member.origin.repo or "").lower() == repo for member in entry.members)
        ]
        meant = named or there
        if len(meant) != 1:
            return typed
        entry = meant[0]
        if quant is None and len(entry.quants) != 1:
            names = [f"{entry.ns}/{entry.name}:{each}" for each in entry.quants]
            message = f"{entry.ns}/{entry.name} has {len(names)} quants here; name one"
            raise AmbiguousSelector("E_AMBIGUOUS_SELECTOR", message, candidates=names)
        return f"{entry.ns}/{entry.name}:{(quant or entry.quants[0]).lower()}"

    def files(self, ref: str) -> list[ViewFile]:
        """The files of a model as a loader sees them, with their paths on this machine."""
        return self._view(ref).files

    def folder(self, ref: str) -> Path:
        """The folder of a model, for runtimes that load one."""
        return Path(self._view(ref).folder)

    def pull(
        self, source: str, *, progress: bool | Watcher = False, force: bool = False, **choices: Any
    ) -> Job:
        """Makes a model complete: one that has a name here from whoever has its bytes, else
        `Org/Name[:QUANT]` from the hub.

        :param progress: True shows a bar (`tqdm` where it is installed); a function is called
            with each snapshot of the job
        :param force: imports weights that no runtime can load, too
        :param choices: further arguments of `import_hf`; `quants=[]` takes all
        :raises AmbiguousSelector: the repository has several quants, and none was named;
            `candidates` lists them
        :raises SvcError: by the code with which the job failed
        """
        return self.wait(self._started(source, force, choices), progress=progress)

    def _started(self, source: str, force: bool, choices: dict[str, Any]) -> Job:
        """The job that makes a model complete."""
        job = None if choices else self._ensure(source)
        if job is None:
            found = _HUB.fullmatch(source)
            if found is None:
                raise UnknownRef("E_UNKNOWN_REF", f"{source} has no name here, and is no name of the hub")
            repo, quants = found.groups()
            if quants is not None:
                choices.setdefault("quants", quants.split(","))
            choices.setdefault("names", "normalized")  # as `svc` does
            if not force:
                choices.setdefault("malformed", "refuse")
            if "quants" not in choices and "files" not in choices:
                self._require_one_quant(repo, choices)
            if choices.get("quants") == []:
                del choices["quants"]
            job = self.import_hf(repo, **choices)
        return job

    def _require_one_quant(self, repo: str, choices: dict[str, Any]) -> None:
        plan = self.import_hf_plan(repo, **choices)
        if len(plan.quants) < 2:
            return
        names = [f"{repo}:{quant}" for quant in plan.quants]
        message = f"{repo} has {len(names)} quants; name one: {', '.join(names)}"
        raise AmbiguousSelector("E_AMBIGUOUS_SELECTOR", message, candidates=names)

    def _ensure(self, source: str) -> Job | None:
        try:
            self.resolve(source)
        except SvcError as error:
            # a name of the hub has capitals, which no reference has
            if error.code in ("E_UNKNOWN_REF", "E_PARSE") and _HUB.fullmatch(source):
                return None
            raise
        return self.ensure(source)

    def watch(self, job: Job | str, *, interval: float = 1) -> Iterator[Job]:
        """Snapshots of a job until it has ended, the last one included. Polls every `interval`
        seconds, more often at first.
        """
        current = self.job(job) if isinstance(job, str) else job
        pause = min(0.05, interval)
        while True:
            yield current
            if current.state in ("done", "failed"):
                return
            time.sleep(pause)
            pause = min(pause * 1.5, interval)
            current = self.job(current.id)

    def wait(self, job: Job | str, *, progress: bool | Watcher = False) -> Job:
        """The job when it is done. Interrupting the wait leaves the job at work: `cancel_job` ends it.

        :raises SvcError: by the code with which it failed
        """
        with ExitStack() as stack:
            show = watcher(progress, stack)
            for last in self.watch(job):
                show(last)
        return succeeded(last)

    def open_blob(self, digest: str, *, buffer_size: int = 1 << 20) -> io.BufferedReader:
        """A blob as a file that can seek. `digest` is `sha256:<hex>` or bare hex.

        :raises NotFound: it is not here
        """
        raw = RawBlob(self._ready(), f"/v1/blob/{segment(digest)}", self._timeout)
        return io.BufferedReader(raw, buffer_size)


def succeeded(job: Job) -> Job:
    """:raises SvcError: by the code with which the job failed"""
    if job.error is not None:
        raise from_code(job.error.code, job.error.message, candidates=job.error.candidates or ())
    return job


__all__ = ["Client", "View", "canonical"]
