"""Log messages to `logging`, and progress to a bar."""

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from . import _dupflow

Progress = bool | Callable[[int], object]
"""True: a bar by tqdm where it is installed, else a line on standard error if that is a terminal. A function
is called with the number of rows read so far, at most every 50 ms."""

_root = logging.getLogger("dupflow")


def _log(level: int, target: str, message: str) -> None:
    """A message of the Rust module `dupflow_core::text` is one of the logger "dupflow.core.text"."""
    name = target.replace("::", ".").replace("dupflow_", "dupflow.", 1)
    logging.getLogger(name if name.startswith("dupflow") else f"dupflow.{name}").log(level, "%s", message)


_dupflow.set_log(_log)


def follow_level() -> None:
    """Makes the native module leave out messages below the level of the logger "dupflow"."""
    _dupflow.set_log_level(_root.getEffectiveLevel())


@contextmanager
def progress_of(progress: Progress, rows: int | None) -> Iterator[Callable[[int], object] | None]:
    """The callback for a call that reads so many rows (None: unknown)."""
    if not isinstance(progress, bool):
        yield progress
    elif not progress:
        yield None
    else:
        try:
            from tqdm.auto import tqdm  # type: ignore[import-untyped,unused-ignore]
        except ImportError:
            yield from _line(rows)
            return
        with tqdm(total=rows, unit=" rows", desc="dupflow") as bar:
            yield lambda read: bar.update(read - bar.n)


def _line(rows: int | None) -> Iterator[Callable[[int], object] | None]:
    if not sys.stderr.isatty():
        yield None
        return
    of = "" if rows is None else f" of {rows:,}"
    try:
        yield lambda read: print(f"\rdupflow: {read:,}{of} rows", end="", file=sys.stderr, flush=True)
    finally:
        print(file=sys.stderr)
