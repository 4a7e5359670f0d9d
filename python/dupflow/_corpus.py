"""A corpus that changes, and the deltas of a stream."""

import os
import threading
import time as clock
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal

from . import _dupflow
from ._frames import Columns, is_row, open_frame
from ._messages import Progress, follow_level, progress_of
from ._results import Clusters, Deltas, Id, Pairs
from ._settings import Pipeline, Settings, assignments, takes_other_columns


class Corpus:
    """Documents that are inserted, replaced and deleted; each `flush` returns how the pairs have changed.

    The deltas of all flushes add up to `pairs()`, which is what `dupflow.pairs` finds among the documents
    that are alive. Calls may come from any thread; they take turns.

    Ids are str (1 to 1,024 bytes of UTF-8) or int (64 bits), of one kind in a corpus; another is a TypeError.

    pipeline, threshold, settings: as in `dupflow.pairs`. workers: threads; the results are the same for any
    number, and one has the shortest flushes. progress: of the documents that are restored.
    state: a folder, made if need be. What `flush` returned is there after the end of the process, by `kill
        -9` too; later changes are lost. Opening it again continues, with the same pipeline and settings, else
        StateError. One corpus at a time holds a folder.

    In a `with` block it is closed at the end, and abandoned after an exception. One that is dropped ends its
    threads. A process that is forked beside a corpus can use neither it nor one of its own: each call is a
    RuntimeError; start processes by "spawn" or "forkserver". After `close` each call is a ValueError. Raises
    ConfigError, StateError, OSError.
    """

    def __init__(
        self,
        pipeline: Pipeline = "minhash",
        *,
        threshold: float | None = None,
        settings: Settings | None = None,
        workers: int = 1,
        state: str | os.PathLike[str] | None = None,
        progress: Progress = False,
    ) -> None:
        self._others = takes_other_columns(pipeline, settings)
        follow_level()
        with progress_of(progress, None) as report:
            self._corpus = _dupflow.Corpus(
                os.fspath(pipeline),
                settings=assignments(threshold, settings),
                workers=workers,
                state=None if state is None else os.fspath(state),
                progress=report,
            )

    def upsert(self, id: Id, text: str, *, time: float | None = None) -> None:
        """Inserts a document, or replaces its text. It counts from the next `flush` on.

        time: seconds since 1970, for a retention. An empty text is a document, in no pair. Raises TypeError,
        or ValueError for an id of no allowed length.
        """
        self._corpus.upsert(id, text, time=time)

    def upsert_many(
        self,
        frame: Any,
        *,
        text: str = "text",
        id: str = "id",
        time: str | None = None,
        nulls: Literal["error", "skip", "delete"] = "error",
        progress: Progress = False,
    ) -> int:
        """`upsert` of each row of a frame (see `help(dupflow)`), in order. Returns the number of upserts.

        nulls: what a missing text is, "error" (ValueError), "skip", or "delete", which deletes the document.
        A missing id is a ValueError. It cuts epochs by itself, so that memory is bounded; the next `flush`
        returns the changes of all of them. After an exception the rows before it are queued.
        """
        opened = open_frame(frame)
        columns = Columns(text, id, time, self._others)
        follow_level()
        with progress_of(progress, opened.rows()) as report:
            return self._corpus.upsert_many(
                opened.stream(columns), text=text, id=id, time=time, nulls=nulls, progress=report
            )

    def delete(self, id: Id) -> None:
        """Deletes a document; does nothing if there is none."""
        self._corpus.delete(id)

    def flush(self) -> Deltas:
        """Ends the epoch, waits until it is durable, and returns how the pairs have changed since the last
        `flush`.

        Sorted by (a, b, diff). After an interruption the epoch ends nevertheless; its changes are in the next
        result.
        """
        follow_level()
        return Deltas(self._corpus.flush())

    def similar(self, text: str, *, top: int = 10) -> list[tuple[Id, float]]:
        """The documents that would be in a pair with a text, with their similarities, the best first, at most
        `top`, as of the last `flush` or later."""
        return self._corpus.similar(text, top=top)

    def pairs(self, *, evidence: bool = False) -> Pairs:
        """All pairs as of the last `flush`, with the columns of `dupflow.pairs`."""
        return Pairs(self._corpus.pairs(evidence=evidence))

    def clusters(self) -> Clusters:
        """All clusters as of the last `flush`, with the columns of `dupflow.clusters`."""
        return Clusters(self._corpus.clusters())

    def stats(self) -> dict[str, int]:
        """documents, pairs, epoch as of the last `flush`; upserts, deletes since the corpus was opened;
        queued: changes since the last `flush`."""
        return self._corpus.stats()

    @property
    def closed(self) -> bool:
        """Whether it was closed or abandoned."""
        return self._corpus.closed

    def close(self) -> None:
        """Flushes, ends the threads and waits for them. Further calls of `close` do nothing."""
        self._corpus.close()

    def abandon(self) -> None:
        """Ends the threads without finishing what is queued, and waits for them."""
        self._corpus.abandon()

    def __enter__(self) -> "Corpus":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._corpus.__exit__(kind, error, traceback)

    def __repr__(self) -> str:
        if self.closed:
            return "<dupflow.Corpus: closed>"
        counts = self.stats()
        return f"<dupflow.Corpus: {counts['documents']:,} documents, {counts['pairs']:,} pairs>"


def follow(
    source: Any,
    *,
    every: str = "100ms",
    text: str = "text",
    id: str = "id",
    time: str | None = None,
    pipeline: Pipeline = "minhash",
    threshold: float | None = None,
    settings: Settings | None = None,
    workers: int = 1,
    tail: bool = False,
) -> Iterator[Deltas]:
    """The deltas of a stream, an epoch at a time; epochs that change no pair are left out.

    source: paths of files and folders, or addresses, as `dupflow replay` reads them (a str, a PathLike, or a
        list of str); with `tail` the last one is a file that is read on as it grows. Or an iterator of rows
        (dicts) and of batches, as they arrive: a row without a text, or with `"op": "delete"`, deletes its
        document.
    every: when an epoch ends: "100ms", "2s" that long after its first event, or "events:N" after so many
        events; an epoch holds whole batches. Of paths also "ts" and "all", as `dupflow replay --epoch`.
    text, id, time: columns of the rows; of paths dotted fields of a record, `time` then is "ts" by default.

    An iterator is read by a thread of its own. When the generator is closed, that thread ends with the item
    it is waiting for. An exception of the iterator is raised after the deltas of what was read before it.
    Other parameters and errors are those of `Corpus`; errors are raised by the call itself, but for those of
    reading.
    """
    paths = _paths(source)
    if paths is None:
        if tail:
            raise ValueError("tail=True reads on in a file, and the source is no path")
        batches = _Arriving(source, Columns(text, id, time, takes_other_columns(pipeline, settings)), every)
        corpus = Corpus(pipeline, threshold=threshold, settings=settings, workers=workers)
        return batches.follow(corpus)
    follow_level()
    files = _dupflow.Follow(
        paths,
        every=every if ":" in every or every in ("ts", "all") else f"every:{every}",
        follow=tail,
        text=text,
        id=id,
        time="ts" if time is None else time,
        pipeline=os.fspath(pipeline),
        settings=assignments(threshold, settings),
        workers=workers,
    )
    return _epochs(files)


def _paths(source: object) -> list[str] | None:
    """The paths of a source, if it consists of them."""
    if isinstance(source, (str, os.PathLike)):
        return [os.fspath(source)]
    if (
        isinstance(source, Sequence)
        and source
        and all(isinstance(item, (str, os.PathLike)) for item in source)
    ):
        return [os.fspath(item) for item in source]
    return None


def _epochs(files: _dupflow.Follow) -> Iterator[Deltas]:
    try:
        while not files.ended:
            table = files.next()
            if table is not None:
                yield Deltas(table)
    finally:
        files.close()


class _Rule:
    """When an epoch ends: after so many seconds, or so many events, inclusive."""

    def __init__(self, every: str) -> None:
        self.seconds, self.events = float("inf"), float("inf")
        kind, _, value = every.rpartition(":")
        units = {"ms": 1e-3, "s": 1.0, "m": 60.0}
        digits = value.rstrip("ms")
        unit = value[len(digits) :]
        if kind == "events" and value.isdecimal() and int(value) > 0:
            self.events = int(value)
        elif kind in ("", "every") and digits.isdecimal() and unit in units:
            self.seconds = int(digits) * units[unit]
        else:
            raise ValueError(f'every="{every}": expected a time such as "100ms", or "events:N" with N from 1')


class _Arriving:
    """An iterator that a thread reads into a corpus, while the caller takes the deltas."""

    def __init__(self, source: Any, columns: Columns, every: str) -> None:
        self._source = source() if callable(source) and not isinstance(source, Iterable) else source
        if not isinstance(self._source, Iterable) and not hasattr(self._source, "__arrow_c_stream__"):
            raise TypeError(
                f"an iterator of rows or batches, or paths are expected, not {type(source).__name__}"
            )
        self._columns, self._rule = columns, _Rule(every)
        self._changed = threading.Condition()
        # Under the condition.
        self._since: float | None = None
        self._events = 0
        self._is_over = False
        self._error: BaseException | None = None

    def follow(self, corpus: Corpus) -> Iterator[Deltas]:
        thread = threading.Thread(target=self._read, args=(corpus,), name="dupflow-follow", daemon=True)
        with corpus:
            thread.start()
            try:
                while self._wait():
                    deltas = corpus.flush()
                    with self._changed:
                        self._events = 0
                        self._changed.notify_all()
                    if len(deltas):
                        yield deltas
            finally:
                with self._changed:
                    self._is_over = True
                    self._changed.notify_all()
            if self._error is not None:
                raise self._error

    def _wait(self) -> bool:
        """Waits until an epoch has to end. False after the last one."""
        with self._changed:
            while not self._is_over and self._events < self._rule.events:
                left = None if self._since is None else self._since + self._rule.seconds - clock.monotonic()
                if left is not None and left <= 0:
                    break
                self._changed.wait(None if left == float("inf") else left)
            is_due = self._since is not None
            self._since = None
            return is_due

    def _read(self, corpus: Corpus) -> None:
        """In its own thread."""
        try:
            for batch in self._batches():
                with self._changed:
                    if self._is_over:
                        return
                events = self._upsert(corpus, batch)
                with self._changed:
                    self._since = clock.monotonic() if self._since is None else self._since
                    self._events += events
                    self._changed.notify_all()
                    # A full epoch ends before the next item is read.
                    self._changed.wait_for(lambda: self._is_over or self._events < self._rule.events)
        except BaseException as error:  # The caller's thread raises it.
            self._error = error
        finally:
            with self._changed:
                self._is_over = True
                self._changed.notify_all()

    def _batches(self) -> Iterator[Any]:
        """The items of the source; a frame is one."""
        if hasattr(self._source, "__arrow_c_stream__") and not hasattr(self._source, "__next__"):
            return iter((self._source,))
        return iter(self._source)

    def _upsert(self, corpus: Corpus, batch: Any) -> int:
        """Queues the changes of an item; returns their number."""
        text, id, time = self._columns.text, self._columns.id, self._columns.time
        assert id is not None
        if not is_row(batch):
            return corpus.upsert_many(batch, text=text, id=id, time=time, nulls="delete")
        if not isinstance(batch, Mapping) or id not in batch:
            raise ValueError(f'a row without "{id}": {batch!r:.100}')
        if batch.get("op") == "delete" or batch.get(text) is None:
            corpus.delete(batch[id])
        else:
            corpus.upsert(batch[id], batch[text], time=None if time is None else batch.get(time))
        return 1
