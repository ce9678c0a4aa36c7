"""Exceptions by code: those of the daemon, and those of this package itself."""

from __future__ import annotations

from collections.abc import Sequence

from . import _codes
from ._codes import *  # noqa: F403
from ._error import SvcError

__all__ = [
    "BadResponse",
    "NoAnswer",
    "ShortBody",
    "SvcError",
    "Unreachable",
    "UnsafeSocket",
    "from_code",
    *(kind.__name__ for kind in _codes.BY_CODE.values()),
]


class Unreachable(SvcError, ConnectionError):
    """No daemon listens on the socket, or the connection broke."""

    def __init__(self, message: str) -> None:
        super().__init__("E_UNREACHABLE", message)


class UnsafeSocket(SvcError, PermissionError):
    """The folder of the default socket is not the user's own: its owner could be
    listening there. Nothing was sent.
    """

    def __init__(self, message: str) -> None:
        super().__init__("E_UNSAFE_SOCKET", message)


class NoAnswer(SvcError, TimeoutError):
    """The daemon did not answer in time."""

    def __init__(self, message: str) -> None:
        super().__init__("E_NO_ANSWER", message)


class BadResponse(SvcError):
    """The answer violates the contract: another program listens on the socket."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__("E_BAD_RESPONSE", message, status=status)


class ShortBody(SvcError, EOFError):
    """The bytes of a blob ended early."""

    def __init__(self, message: str) -> None:
        super().__init__("E_SHORT_BODY", message)


def from_code(
    code: str,
    message: str,
    *,
    status: int | None = None,
    candidates: Sequence[str] = (),
) -> SvcError:
    """The exception for a code of the daemon."""
    kind = _codes.BY_CODE.get(code, SvcError)
    return kind(code, message, status=status, candidates=candidates)
