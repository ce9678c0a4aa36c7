"""A blob as a file."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

from .errors import BadResponse, ShortBody

if TYPE_CHECKING:
    from collections.abc import Buffer  # type: ignore[attr-defined, unused-ignore]

    from ._transport import Response, Transport

_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")


class RawBlob(io.RawIOBase):
    """The bytes of a blob, read by ranges. Reading on continues the last answer; a seek asks for
    the rest from there.

    :raises ShortBody: the daemon sent less than it announced
    """

    def __init__(self, transport: Transport, path: str, timeout: float | None) -> None:
        super().__init__()
        self._transport = transport
        self._path = path
        self._timeout = timeout
        self._position = 0
        self._response: Response | None = None
        self._left = 0
        head = transport.send("HEAD", path, timeout=timeout)
        head.close()
        length = head.header("content-length")
        if not length.isascii() or not length.isdigit():
            raise BadResponse("the daemon did not send the length of the blob", head.status)
        self.size = int(length)
        """Bytes of the whole blob."""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.size}[whence]
        if base + offset < 0:
            raise ValueError(f"position {base + offset} is before the beginning")
        if base + offset != self._position:
            self._drop()
            self._position = base + offset
        return self._position

    def readinto(self, target: Buffer) -> int:
        if self.closed:
            raise ValueError("read of closed file")
        view = memoryview(target).cast("B")
        if self._position >= self.size or len(view) == 0:
            return 0
        if self._response is None:
            self._response = self._open()
        count = self._response.readinto(view[: min(len(view), self._left)])
        if count == 0:
            self._drop()
            raise ShortBody(f"the blob ended at {self._position} of {self.size} bytes")
        self._position += count
        self._left -= count
        if self._left == 0:
            self._drop()
        return count

    def _open(self) -> Response:
        start = self._position
        response = self._transport.send(
            "GET", self._path, headers={"Range": f"bytes={start}-"}, timeout=self._timeout
        )
        found = _CONTENT_RANGE.fullmatch(response.header("content-range"))
        wanted = (start, self.size - 1, self.size)
        if response.status != 206 or not found or tuple(map(int, found.groups())) != wanted:
            response.close()
            raise BadResponse("the answer is not the range that was asked for", response.status)
        self._left = self.size - start
        return response

    def _drop(self) -> None:
        if self._response is not None:
            self._response.close()
            self._response = None

    def close(self) -> None:
        self._drop()
        super().close()
