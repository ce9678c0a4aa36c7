"""The client for asyncio: the methods of `svc_client.Client`, to be awaited.

    >>> from svc_client.aio import Client
    >>> await Client().pull("qwen/qwen3-0.6b-gguf:q8_0")

Requests and waits are coroutines, without threads: cancelling one closes its connection.
"""

from __future__ import annotations

import asyncio
import http.client
import io
import os
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

from . import _client
from ._aio_api import AsyncRoutes
from ._api import Job, ViewFile
from ._client import Request, request_of, succeeded
from ._json import decode
from ._progress import Watcher, watcher
from ._transport import MAX_JSON_BYTES, Answer, Response, content_of, refusal, target_of, unreachable
from .errors import BadResponse, NoAnswer, Unreachable

T = TypeVar("T")

_MAX_HEAD_BYTES = 64 * 1024
_CHUNK_BYTES = 256 * 1024


class _Received:
    """What `http.client` reads an answer from."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw

    def makefile(self, mode: str) -> io.BytesIO:
        return io.BytesIO(self._raw)


class Client(AsyncRoutes):
    """The daemon of this machine, for asyncio. It holds no connection, and belongs to no event loop.

    Arguments and errors are those of `svc_client.Client`.
    """

    def __init__(self, socket_path: str | os.PathLike[str] | None = None, *, timeout: float = 60) -> None:
        self._sync = _client.Client(socket_path, timeout=timeout)
        self._timeout = timeout

    @property
    def socket_path(self) -> str:
        return self._sync.socket_path

    async def _call(
        self, route: str, result: type[T], asked: dict[str, Any], has_body: bool | None = None
    ) -> T:
        request = request_of(route, asked, has_body, self._timeout)
        try:
            response = await asyncio.wait_for(self._exchange(request), request.timeout)
        except asyncio.TimeoutError as error:
            raise NoAnswer(f"no answer within {request.timeout:g} s from {self.socket_path}") from error
        with ExitStack() as stack:
            stack.callback(response.close)
            if not 200 <= response.status < 300:
                raise refusal(response, request.method)
            value: T = decode(result, response.json())
            return value

    async def _exchange(self, request: Request) -> Response:
        """Sends a request, and reads its answer to the end of the connection."""
        transport = self._sync._ready()
        try:
            reader, writer = await asyncio.open_unix_connection(transport.socket_path)
        except OSError as error:
            raise unreachable(transport.socket_path, error) from error
        try:
            body = content_of(request.body)
            head = [
                f"{request.method} {target_of(request.path, request.query)} HTTP/1.1",
                "Host: svc",
                "Connection: close",
                "Accept-Encoding: identity",
            ]
            if body is not None:
                head += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
            elif request.method in ("POST", "PUT", "DELETE"):
                head.append("Content-Length: 0")
            writer.write("\r\n".join([*head, "", ""]).encode("ascii") + (body or b""))
            await writer.drain()
            received = bytearray()
            while chunk := await reader.read(_CHUNK_BYTES):
                received += chunk
                if len(received) > MAX_JSON_BYTES + _MAX_HEAD_BYTES:
                    raise BadResponse(f"the answer is over {MAX_JSON_BYTES} bytes", 0)
        except OSError as error:
            raise Unreachable(f"the connection to the daemon broke: {error}") from error
        finally:
            writer.close()
        answer = Answer(_Received(bytes(received)), method=request.method)  # type: ignore[arg-type]
        try:
            answer.begin()
        except http.client.RemoteDisconnected as error:
            raise Unreachable(f"the connection to the daemon broke: {error}") from error
        except http.client.HTTPException as error:
            raise BadResponse(f"the answer is not from svcd: {error}") from error
        return Response(None, answer)

    async def path(self, ref: str) -> Path:
        """As `svc_client.Client.path`."""
        return await asyncio.to_thread(self._sync.path, ref)

    async def files(self, ref: str) -> list[ViewFile]:
        """As `svc_client.Client.files`."""
        return await asyncio.to_thread(self._sync.files, ref)

    async def folder(self, ref: str) -> Path:
        """As `svc_client.Client.folder`."""
        return await asyncio.to_thread(self._sync.folder, ref)

    async def pull(
        self, source: str, *, progress: bool | Watcher = False, force: bool = False, **choices: Any
    ) -> Job:
        """As `svc_client.Client.pull`. Cancelling it leaves the job at work: `cancel_job` ends it."""
        job = await asyncio.to_thread(self._sync._started, source, force, choices)
        return await self.wait(job, progress=progress)

    async def watch(self, job: Job | str, *, interval: float = 1) -> AsyncIterator[Job]:
        """As `svc_client.Client.watch`, for `async for`."""
        current = await self.job(job) if isinstance(job, str) else job
        pause = min(0.05, interval)
        while True:
            yield current
            if current.state in ("done", "failed"):
                return
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, interval)
            current = await self.job(current.id)

    async def wait(self, job: Job | str, *, progress: bool | Watcher = False) -> Job:
        """As `svc_client.Client.wait`."""
        with ExitStack() as stack:
            show = watcher(progress, stack)
            async for last in self.watch(job):
                show(last)
        return succeeded(last)


__all__ = ["Client"]
