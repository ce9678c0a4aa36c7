"""HTTP/1.1 over the daemon's Unix socket, a connection for each request."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from ._json import encode
from .errors import BadResponse, NoAnswer, SvcError, Unreachable, from_code

MAX_JSON_BYTES = 64 * 1024 * 1024
"""The longest answer is the plan for a repository with 100,000 files."""


class Answer(http.client.HTTPResponse):
    def _safe_read(self, amt: int) -> bytes:
        # the base class takes a chunk of size -1, and reads to the end whatever comes
        if amt < 0:
            raise http.client.HTTPException("a chunk of negative size")
        read: bytes = super()._safe_read(amt)  # type: ignore[misc]
        return read


class _UnixConnection(http.client.HTTPConnection):
    response_class = Answer

    def __init__(self, path: str, timeout: float | None) -> None:
        super().__init__("svc", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Response:
    """The head of an answer, and its connection. Close it."""

    def __init__(
        self, connection: http.client.HTTPConnection | None, response: http.client.HTTPResponse
    ) -> None:
        self._connection = connection
        self._response = response
        self.status = response.status

    def header(self, name: str) -> str:
        return self._response.getheader(name) or ""

    def readinto(self, target: memoryview) -> int:
        """:raises Unreachable: the connection broke"""
        try:
            return self._response.readinto(target)
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(f"the connection to the daemon broke: {error}") from error

    def json(self) -> Any:
        """:raises BadResponse: it is not JSON, or too long"""
        try:
            text = self._response.read(MAX_JSON_BYTES + 1)
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(f"the connection to the daemon broke: {error}") from error
        if len(text) > MAX_JSON_BYTES:
            raise BadResponse(f"the answer is over {MAX_JSON_BYTES} bytes", self.status)
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise BadResponse("the answer is not JSON", self.status) from error

    def close(self) -> None:
        self._response.close()
        if self._connection is not None:
            self._connection.close()


def target_of(path: str, query: Mapping[str, str | None] | None) -> str:
    given = {key: value for key, value in (query or {}).items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path


def content_of(body: Mapping[str, Any] | None) -> bytes | None:
    return None if body is None else json.dumps(encode(body)).encode()


def unreachable(socket_path: str, error: OSError) -> Unreachable:
    return Unreachable(
        f"no daemon answers at {socket_path} ({error.strerror or error}); start it with: svcd"
    )


class Transport:
    """Sends requests to one socket. Threads may share it."""

    def __init__(self, socket_path: str) -> None:
        self.socket_path = socket_path

    def send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str | None] | None = None,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None,
    ) -> Response:
        """The answer, when its head is here.

        :param timeout: seconds; None waits as long as it takes
        :raises SvcError: the daemon's refusal, by its code; `Unreachable`, `NoAnswer`, `BadResponse`
        """
        target, content = target_of(path, query), content_of(body)
        sent = dict(headers or {})
        if content is not None:
            sent["Content-Type"] = "application/json"
        connection = _UnixConnection(self.socket_path, timeout)
        try:
            connection.request(method, target, body=content, headers=sent)
            response = Response(connection, connection.getresponse())
        except TimeoutError as error:
            connection.close()
            raise NoAnswer(f"no answer within {timeout:g} s from {self.socket_path}") from error
        except OSError as error:
            connection.close()
            raise unreachable(self.socket_path, error) from error
        except http.client.HTTPException as error:
            connection.close()
            raise BadResponse(f"the answer is not from svcd: {error}") from error
        except BaseException:
            connection.close()
            raise
        if 200 <= response.status < 300:
            return response
        try:
            raise refusal(response, method)
        finally:
            response.close()

    def json(self, method: str, path: str, **options: Any) -> Any:
        """As `send`; returns the body."""
        response = self.send(method, path, **options)
        try:
            return response.json()
        finally:
            response.close()


_HEAD_CODES = {400: "E_BAD_REQUEST", 404: "E_NOT_FOUND", 412: "E_PRECONDITION_FAILED"}
"""An answer to HEAD has no body that could say more."""


def refusal(response: Response, method: str) -> SvcError:
    """The error of an answer that is not 2xx. Reads it."""
    if response.status < 400:
        return BadResponse("the daemon neither answers nor refuses", response.status)
    return _refusal_of_head(response) if method == "HEAD" else _refusal(response)


def _refusal_of_head(response: Response) -> SvcError:
    code = _HEAD_CODES.get(response.status)
    if code is None:
        return BadResponse("the daemon refused without a word", response.status)
    return from_code(code, f"the daemon refused with status {response.status}", status=response.status)


def _refusal(response: Response) -> SvcError:
    envelope = response.json()
    error = envelope.get("error") if isinstance(envelope, dict) else None
    if not isinstance(error, dict) or not isinstance(error.get("code"), str):
        return BadResponse("the answer is not from svcd", response.status)
    candidates = error.get("candidates")
    return from_code(
        error["code"],
        str(error.get("message", "")),
        status=response.status,
        candidates=[str(each) for each in candidates] if isinstance(candidates, list) else (),
    )
