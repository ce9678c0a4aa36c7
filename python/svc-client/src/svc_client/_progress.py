"""Progress of a job, for people."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._api import Job

Watcher = Callable[["Job"], None]


def watcher(progress: bool | Watcher, stack: ExitStack) -> Watcher:
    """What is called with each snapshot of a job: tqdm's bar where it is installed, else a line on
    standard error. `stack` closes the bar.
    """
    if callable(progress):
        return progress
    if not progress:
        return lambda job: None
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return _Line(stack)
    bar = stack.enter_context(tqdm(unit="B", unit_scale=True, unit_divisor=1024))
    return lambda job: _update(bar, job)


def _update(bar: Any, job: Job) -> None:
    bar.total = job.bytes_total
    bar.set_description(job.as_ or job.ref, refresh=False)
    bar.update((job.bytes_done or 0) - bar.n)


class _Line:
    def __init__(self, stack: ExitStack) -> None:
        self._last = ""
        if sys.stderr.isatty():
            stack.callback(lambda: print(file=sys.stderr))

    def __call__(self, job: Job) -> None:
        if not job.bytes_total:
            return
        text = f"{job.as_ or job.ref}: {100 * (job.bytes_done or 0) // job.bytes_total} %"
        if text == self._last:
            return
        self._last = text
        if sys.stderr.isatty():
            print(f"\r{text}", end="", file=sys.stderr, flush=True)
