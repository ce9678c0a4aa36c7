"""The base of all exceptions of this package."""

from __future__ import annotations

from collections.abc import Sequence


class SvcError(Exception):
    """A call that failed. Each code of the daemon has a subclass of its own in
    `svc_client.errors`; a code of a newer daemon comes as this class.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        status: int | None = None,
        candidates: Sequence[str] = (),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status
        """HTTP status, if there was an answer."""
        self.candidates = list(candidates)
        """What the daemon knows instead."""

    def __str__(self) -> str:
        known = f" (known: {', '.join(self.candidates)})" if self.candidates else ""
        return f"{self.code}: {self.message}{known}"
