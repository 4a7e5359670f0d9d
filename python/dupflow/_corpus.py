"""A corpus that changes, and the deltas of a stream."""

import os
import threading
import time as clock
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from types import TracebackType
from typing import Any, Literal

from . import _dupflow
from ._columns import Columns, is_missing, seconds
from ._frames import Items, Reopened, is_row, open_frame
from ._libraries import Arrow, Frame
from ._messages import Progress, follow_level, progress_of
from ._results import Clusters, Deltas, Id, Pairs, Similar
from ._settings import Pipeline, Settings, assignments


class Corpus:
    """Documents that are inserted, replaced and deleted; each `flush` returns how the pairs have changed.

    The deltas of all flushes add up to `pairs()`, which is what `dupflow.pairs` finds among the documents
    that are alive. Calls may come from any thread; they take turns.

    Ids are str (1 to 1,024 bytes of UTF-8) or int (64 bits), of one kind in a corpus; another is a TypeError.

    pipeline, threshold, settings: as in `dupflow.pairs`. workers: threads; the results are the same for any
    number, and one has the shortest flushes. progress: of the documents that are restored.
    state: a folder, made if need be. What `flush` returned is there after the end of the process, by `kill
        -9` too; later changes are lost. Opening it again continues, with the same pipeline and settings, else
        StateError; its epochs are numbered on from the restored one. One corpus at a time holds a folder,
        until it is closed, abandoned or dropped.

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
        follow_level()
        name, assigned = os.fspath(pipeline), assignments(threshold, settings)
        self._fields = tuple(_dupflow.field_columns(name, assigned))
        with progress_of(progress, None) as report:
            self._corpus = _dupflow.Corpus(
                name,
                settings=assigned,
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
        columns = Columns(text, id, time, self._fields, (id, text) if nulls == "error" else (id,))
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
        before = self._corpus.flushes
        try:
            return Deltas(self._corpus.flush())
        except BaseException:
            self._corpus.unreceived(before)
            raise

    def similar(self, text: str, *, top: int = 10) -> list[Similar]:
        """The documents that would be in a pair with a text, with their similarities and, of containment,
        both shares, the best first, at most `top`, as of the last `flush` or later."""
        return [Similar(*found) for found in self._corpus.similar(text, top=top)]

    def pairs(self, *, evidence: bool = False) -> Pairs:
        """All pairs as of the last `flush`, with the columns of `dupflow.pairs`."""
        return Pairs(self._corpus.pairs(evidence=evidence))

    def clusters(self) -> Clusters:
        """All clusters as of the last `flush`, with the columns of `dupflow.clusters`."""
        return Clusters(self._corpus.clusters())

    def stats(self) -> dict[str, int]:
        """documents, pairs, epoch as of the last `flush`, or as they were restored; upserts, deletes since
        the corpus was opened; queued: changes since the last `flush`."""
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
        list of str); with `tail` the last one is a file that is read on as it grows. Or a frame, or an
        iterator of rows (dicts) and of batches (any frames, lists of rows too), as they arrive: a row without
        a text, or with "delete" in the field or column `op`, deletes its document. "upsert" and None are the
        other operations; another is a ValueError. So is, at the end, a field that no row has, though `time`
        or the pipeline names it.
    every: when an epoch ends: "100ms", "2s" that long after its first event, or "events:N" after so many
        events; an epoch holds whole tables. Of paths also "ts" and "all", as `dupflow replay --epoch`.
    text, id, time: columns of the rows; of paths dotted fields of a record, `time` then is "ts" by default.

    An iterator is read by a thread of its own. When the generator is closed, or the caller's loop is
    interrupted, that thread is not waited for while it waits for the next item; it ends with it. An
    exception of the iterator is raised after the deltas of what was read before it.
    Other parameters and errors are those of `Corpus`; errors are raised by the call itself, but for those of
    reading.
    """
    paths = _paths(source)
    if paths is None:
        if tail:
            raise ValueError("tail=True reads on in a file, and the source is no path")
        fields = _dupflow.field_columns(os.fspath(pipeline), assignments(threshold, settings))
        batches = _Arriving(source, Columns(text, id, time, tuple(fields)), every)
        corpus = Corpus(pipeline, threshold=threshold, settings=settings, workers=workers)
        return batches.follow(corpus)
    follow_level()
    files = _dupflow.Follow(
        paths,
        every=every,
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


class _Arriving:
    """Rows and tables that a thread reads into a corpus, while the caller takes the deltas."""

    def __init__(self, source: Any, columns: Columns, every: str) -> None:
        self._source = open_frame(source)
        self._columns = columns
        self._has_op = "op" not in columns.named
        # The keys of all rows that are upserted.
        self._seen: dict[str, None] = {}
        # The most seconds and events of an epoch, inclusive; `inf` and 0 without a limit.
        self._seconds, self._most = _dupflow.every(every)
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
            except BaseException:
                # The thread may be inside a call of the corpus, which ends now.
                corpus._corpus.stop()
                raise
            finally:
                with self._changed:
                    self._is_over = True
                    self._changed.notify_all()
            if self._error is not None:
                raise self._error

    def _is_full(self) -> bool:
        return 0 < self._most <= self._events

    def _wait(self) -> bool:
        """Waits until an epoch has to end. False after the last one."""
        with self._changed:
            while not self._is_over and not self._is_full():
                left = inf if self._since is None else self._since + self._seconds - clock.monotonic()
                if left <= 0:
                    break
                # Libraries whose handlers of signals continue system calls let no longer wait be interrupted.
                self._changed.wait(min(left, 0.2))
            is_due = self._since is not None
            self._since = None
            return is_due

    def _read(self, corpus: Corpus) -> None:
        """In its own thread."""
        try:
            for part in self._parts(self._source):
                with self._changed:
                    if self._is_over:
                        return
                events = self._upsert(corpus, part)
                with self._changed:
                    self._since = clock.monotonic() if self._since is None else self._since
                    self._events += events
                    self._changed.notify_all()
                    # A full epoch ends before the next part is read.
                    self._changed.wait_for(lambda: self._is_over or not self._is_full())
            if self._seen:
                self._columns.of(self._seen)
        except BaseException as error:  # The caller's thread raises it.
            self._error = error
        finally:
            with self._changed:
                self._is_over = True
                self._changed.notify_all()

    def _parts(self, frame: Frame) -> Iterator[Any]:
        """The rows and the tables of a frame, in order."""
        if isinstance(frame, Reopened):
            yield from self._parts(open_frame(frame.data()))
        elif isinstance(frame, Items):
            for item in frame.data:
                if is_row(item):
                    yield item
                else:
                    yield from self._parts(open_frame(item))
        elif isinstance(frame, Arrow):
            yield from frame.batches()
        else:
            yield frame

    def _upsert(self, corpus: Corpus, part: Any) -> int:
        """Queues the changes of a row or a table; returns their number."""
        if isinstance(part, Frame):
            return self._upsert_table(corpus, part)
        text, id, time, fields, _ = self._columns
        assert id is not None
        if not isinstance(part, Mapping) or id not in part:
            raise ValueError(f'a row without "{id}": {part!r:.100}')
        if _deletes(part.get("op") if self._has_op else None) or is_missing(part.get(text)):
            corpus.delete(part[id])
            return 1
        self._seen.update(dict.fromkeys(part))
        if fields:
            row = {name: part.get(name) for name in self._columns.read}
            corpus.upsert_many([row], text=text, id=id, time=time)
        else:
            corpus.upsert(part[id], part[text], time=None if time is None else seconds(part.get(time)))
        return 1

    def _upsert_table(self, corpus: Corpus, table: Frame) -> int:
        text, id, time, *_ = self._columns
        assert id is not None
        rows, names = table.rows() or 0, table.names()
        deletes = [_deletes(op) for op in table.column("op")] if self._has_op and "op" in names else []
        if text not in names and deletes and all(deletes):
            for name in table.column(id):
                corpus.delete(name)
            return rows
        if text in names and any(deletes):
            texts = [None if gone else kept for gone, kept in zip(deletes, table.column(text), strict=True)]
            table = open_frame(table.replaced(text, texts))
        corpus.upsert_many(table, text=text, id=id, time=time, nulls="delete")
        return rows


def _deletes(op: object) -> bool:
    """Whether an operation of a row is a delete. ValueError for an unknown one."""
    if is_missing(op):
        return False
    if op not in ("upsert", "delete"):
        raise ValueError(f'op: expected "upsert" or "delete", found {op!r:.100}')
    return op == "delete"
