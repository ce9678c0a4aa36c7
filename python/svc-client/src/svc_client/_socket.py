"""Where the daemon listens, by the rule of the API (spec http.3)."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping

from .errors import UnsafeSocket


def default_socket_path(env: Mapping[str, str], uid: int) -> str:
    """`SVC_SOCKET`, else `svc-<uid>/svc.sock` below `XDG_RUNTIME_DIR`, `TMPDIR` or `/tmp`."""
    given = env.get("SVC_SOCKET", "")
    if given:
        return given
    bases = (env.get(name, "") for name in ("XDG_RUNTIME_DIR", "TMPDIR"))
    base = next((folder for folder in bases if folder.startswith("/")), "/tmp")
    return f"{base.rstrip('/')}/svc-{uid}/svc.sock"


def require_own_folder(socket_path: str, uid: int) -> None:
    """The folder of a default path may lie where anybody could have made it first.

    :raises UnsafeSocket: it is no plain folder, not the user's, or open to others
    """
    folder = os.path.dirname(socket_path)
    try:
        facts = os.lstat(folder)
    except FileNotFoundError:
        return  # nobody listens there, as connecting will tell
    if not stat.S_ISDIR(facts.st_mode):
        problem = "is no plain folder"
    elif facts.st_uid != uid:
        problem = f"belongs to user {facts.st_uid}, not to {uid}"
    elif facts.st_mode & 0o077:
        problem = f"is open to others (mode {stat.S_IMODE(facts.st_mode):o})"
    else:
        return
    raise UnsafeSocket(f"{folder} {problem}; name the socket by SVC_SOCKET if it is the right one")
