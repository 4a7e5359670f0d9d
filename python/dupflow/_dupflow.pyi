"""The native half of dupflow: Arrow tables in, Arrow tables out. `dupflow` is the public half.

Rows inside, ids outside: `pairs`, `clusters` and `dedup` number the rows of a frame from 0, and put the ids
of the caller's column into their results afterwards. So ids keep their Arrow type and may repeat.

Every long call releases the GIL, and looks for signals and delivers messages at least every 50 ms: a
KeyboardInterrupt ends it within a second, and no thread is left. An exception of a callback ends it too.

Texts are columns of the Arrow types string, large_string, string_view, or dictionaries of them. Any other
type is a TypeError. An empty text is a document: it has no token, and so it is in no pair. A null text is
an error (`nulls="error"`, a ValueError that names the first row), or no document (`nulls="skip"`: the row is
in no pair, `dedup` keeps it, and `stats["nulls"]` counts it).

A pipeline is a name or a path as in `dupflow replay --pipeline`; `settings` are as in `--set`, each
"key=value", as in `["threshold=0.7"]`. Columns of further text fields (`text.fields`) and of fields in
`pairs.where` are found by their names; a missing one is a ValueError.
"""

from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Literal, Protocol, TypeAlias, final

__all__ = [
    "FEATURES",
    "Comparison",
    "ConfigError",
    "Corpus",
    "Deduplicated",
    "Follow",
    "Plan",
    "StateError",
    "Table",
    "__version__",
    "clusters",
    "compare",
    "dedup",
    "every",
    "field_columns",
    "keep_columns",
    "main",
    "pairs",
    "plan",
    "set_log",
    "set_log_level",
]

__version__: str
"""The version of the library and of the command line."""

FEATURES: tuple[str, ...]
"""The optional parts that this build has, sorted: some of "article", "kafka", "lab", "monitor",
"object-store", "parquet", "postgres", "sqlite", "views", "webhook"."""

class _ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class _ArrowArray(Protocol):
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

_Frame: TypeAlias = _ArrowStream | _ArrowArray | Iterable[_ArrowStream | _ArrowArray]
"""A table, a record batch, or an iterable of them, all with the same columns. It is read once and batch by
batch: no text is copied, and at most a few batches are alive at a time."""

_Progress: TypeAlias = Callable[[int], object]
"""Called with the number of rows read so far, on the calling thread, at most every 50 ms and once at the
end."""

_Nulls: TypeAlias = Literal["error", "skip"]

class ConfigError(ValueError):
    """A pipeline or a setting that cannot be used. Nothing has begun."""

    problems: list[str]
    """Every problem, one line each, in the words of the command line; at least one."""

class StateError(RuntimeError):
    """The state or the output of an earlier run cannot be continued: it is damaged, it belongs to another
    pipeline, or another corpus holds it."""

def set_log(log: Callable[[int, str, str], object] | None, /) -> None:
    """Messages of all corpora and calls go to `log(level, target, message)`; None discards them.

    `level` is a level of `logging` (10, 20, 30, 40), or 5 for traces; `target` is the Rust module that
    reports. `log` is called on a thread that is inside a call of this module, never on a worker's. At most
    1,000 messages wait; if more are dropped, a message says how many.
    """

def set_log_level(level: int, /) -> None:
    """Messages below this level of `logging` are not made. The default is 30, warnings and errors."""

def main(argv: Sequence[str], /) -> int:
    """The command line; `argv` begins with the program's name. Returns the exit code: 0 done, 1 failed
    while running, 2 wrong usage or configuration.

    It writes to file descriptors 1 and 2, not to `sys.stdout`. Its messages go to descriptor 2, not to
    `set_log`. It does not end the process. SIGINT and SIGTERM are its own while it runs, where the command
    catches them (`run`); for other commands the caller should set the default action of SIGINT before.
    """

@final
class Table:
    """Columns of equal length; immutable. What gives it to a library is `__arrow_c_stream__`."""

    @staticmethod
    def from_columns(
        columns: dict[str, list[str | None] | list[int | None] | list[float | None] | list[bool | None]], /
    ) -> Table:
        """A table of lists of equal length: strings become large_string, integers int64, floats float64,
        bools bool. Values are copied.

        Raises ValueError for lists of different lengths, TypeError for values of other or mixed types.
        """
    @property
    def num_rows(self) -> int: ...
    @property
    def column_names(self) -> list[str]: ...
    @property
    def stats(self) -> dict[str, int]:
        """Counts of the call that made the table, as documented there; else empty."""
    def column(self, name: str, /) -> list[object]:
        """The values of a column as str, int, float, bool or None. KeyError without such a column;
        TypeError for ids of other Arrow types, which need a library of data frames."""
    def __len__(self) -> int:
        """The number of rows."""
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...

def pairs(
    frame: _Frame,
    *,
    text: str = "text",
    id: str | None = None,
    time: str | None = None,
    pipeline: str = "minhash",
    settings: Sequence[str] = ...,
    workers: int = 1,
    evidence: bool = False,
    nulls: _Nulls = "error",
    progress: _Progress | None = None,
) -> Table:
    """All near-duplicate pairs of the rows of a frame.

    Columns: `a`, `b` (the type of the id column; without `id` row numbers from 0, int64) and `similarity`
    (float64, from the threshold, inclusive, to 1). Of containment also `in_a`, the share of b's shingles that
    a has, and `in_b`, that of a's shingles that b has (float64). With `evidence` also `blocks`, `look`,
    `components` (int64) and `standard_error` (float64). One row a pair, `a` from the earlier row; sorted by the rows of
    (a, b). `stats`: documents, nulls, pairs.

    `time` is a column of seconds since 1970 (numbers), or of Arrow timestamps; only a retention uses it.
    Raises ConfigError, TypeError or ValueError for a frame that cannot be read.
    """

def clusters(
    frame: _Frame,
    *,
    text: str = "text",
    id: str | None = None,
    time: str | None = None,
    pipeline: str = "minhash",
    settings: Sequence[str] = ...,
    workers: int = 1,
    nulls: _Nulls = "error",
    progress: _Progress | None = None,
) -> Table:
    """The clusters of at least two rows that the pairs of `pairs` form.

    Columns: `document` and `cluster` (ids as in `pairs`; a cluster has the id of one of its documents) and
    `size` (int64). A row for each document of a cluster, whose `size` is null, sorted by the rows of
    (cluster, document). Then a row for each giant, a cluster of more than `cluster_limit` documents: its
    `document` is null, `size` is its number of documents. `stats`: documents, nulls, clusters, giants.
    """

@final
class Deduplicated:
    """What `dedup` found."""

    @property
    def mask(self) -> Table:
        """One column `keep` (bool), a row for each row of the frame, in its order."""
    @property
    def mask_bytes(self) -> bytes:
        """As `mask`, a byte for each row: 1 keep, 0 remove. `numpy.frombuffer(m, dtype=bool)` takes it."""
    @property
    def removed(self) -> Table:
        """A row for each removed row, in the frame's order: `id`, `kept` (the document kept in its place)
        and `cluster`, as in `clusters`. With `against` also `old` (bool): whether `kept` is of the old
        frame; then without ids all three count from 0 over the old frame and then the new one.
        """
    @property
    def stats(self) -> dict[str, int]:
        """documents, nulls, kept, removed; with `against` also old."""

def dedup(
    frame: _Frame,
    *,
    text: str = "text",
    id: str | None = None,
    time: str | None = None,
    pipeline: str = "minhash",
    settings: Sequence[str] = ...,
    workers: int = 1,
    keep: str | None = None,
    against: _Frame | None = None,
    nulls: _Nulls = "error",
    progress: _Progress | None = None,
) -> Deduplicated:
    """Which rows to keep: one of each cluster, and every row in none. The frame itself is not changed.

    Of containment, from the largest text down, a row is removed if one that is kept has at least the share
    `output.remove_if` of its shingles; `kept` and `cluster` are that one. `keep`, `against` and estimated
    shares are then a ConfigError.

    `keep`: a value of `output.keep`: "smallest" the first row, "oldest" the least `time`, "longest" the most
    bytes of UTF-8, "named" the document that names the cluster, "max:COLUMN", "min:COLUMN",
    "priority:COLUMN:A>B", "source-order"; ties go to the earlier row. None: as the pipeline's setting.

    `against`: a frame with the same column names whose documents are kept already. A row in a cluster with
    any of them is removed; `kept` is then one of the old ones, by the same rule. Its id column has the type
    of the frame's, else TypeError.
    """

@final
class Plan:
    """What a pipeline does, without running it."""

    @property
    def name(self) -> str: ...
    @property
    def threshold(self) -> float:
        """A pair counts from this similarity on, inclusive."""
    @property
    def documents(self) -> int:
        """The number of documents that the figures are for."""
    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits: equal for pipelines that make equal sketches."""
    @property
    def sketch_bytes(self) -> int:
        """Bytes of one sketch."""
    @property
    def standard_error(self) -> float:
        """Standard error of a similarity at the threshold; 0 if it is computed exactly."""
    @property
    def bytes_per_document(self) -> float:
        """Memory of a run in bytes for each document, without its id."""
    @property
    def total_bytes(self) -> float:
        """`bytes_per_document` times `documents`."""
    def recall(self, similarity: float, /) -> float:
        """The least probability that a pair of this similarity is reported, in 0..=1.

        Raises ValueError for a similarity outside 0..=1.
        """
    def compared(self, similarity: float, /) -> float:
        """The probability that a pair of this similarity is a candidate, in 0..=1. ValueError as above."""
    def curve(self) -> Table:
        """`similarity`, `compared`, `reported` (float64) at evenly spaced similarities."""
    def quotes(self) -> Table:
        """Of containment, the greatest probability that a quote is found: `words` of the quote, replaced
        words of 100 (`edits`), how many times as long the text is that has it (`ratio`; all int64), and
        `found_at_most` (float64). No rows for other measures."""
    def text(self) -> str:
        """What `dupflow plan` prints."""
    def json(self) -> str:
        """What `dupflow plan --format json` prints: one JSON object."""

def plan(
    pipeline: str = "minhash",
    *,
    settings: Sequence[str] = ...,
    documents: int | None = None,
    workers: int = 1,
) -> Plan:
    """The plan of a pipeline for this many documents, at least 1; None: as the pipeline says.

    Raises ConfigError.
    """

@final
class Comparison:
    """Two texts, compared by every measure. All similarities are in 0..=1."""

    @property
    def jaccard(self) -> float:
        """Of the sets of shingles of the pipeline."""
    @property
    def containment(self) -> tuple[float, float]:
        """The share of a's shingles that b has, and of b's that a has."""
    @property
    def weighted_jaccard(self) -> float:
        """By counts of shingles."""
    @property
    def cosine(self) -> float:
        """By counts of shingles."""
    @property
    def similarity(self) -> float | None:
        """What the pipeline would report for the pair; None if its filter rejects it or a text has no
        token."""
    @property
    def shares(self) -> tuple[float, float] | None:
        """What a pipeline of containment would report: the share of a's shingles that b has, and of b's that
        a has. None as `similarity`, and for other measures."""
    @property
    def is_candidate(self) -> bool:
        """Whether the two share a block, so that a run would compare them."""
    @property
    def is_pair(self) -> bool:
        """Whether a run would report them: a candidate that the filter accepts."""
    @property
    def passages(self) -> tuple[list[tuple[bool, str]], list[tuple[bool, str]]]:
        """Both texts cut into passages, each with whether the other text has it too; joined they are the text
        as the pipeline reads it."""
    def text(self) -> str:
        """What `dupflow compare --all` prints."""
    def html(self) -> str:
        """The page that `dupflow compare --html` writes."""

def compare(a: str, b: str, *, pipeline: str = "minhash", settings: Sequence[str] = ...) -> Comparison:
    """Compares two texts. Raises ConfigError."""

@final
class Corpus:
    """A corpus that changes. Its calls may come from any thread; they take turns.

    Ids are str (1 to 1,024 bytes of UTF-8) or int (64 bits); the first one decides for the corpus, another
    kind is a TypeError. Ids in tables are large_string or int64; before the first id, large_string. Strings
    are ordered by bytes.

    With `state`, a folder that is made if need be, what `flush` returned survives the end of the process, by
    `kill -9` too; later calls are lost. Opening the folder again continues, with the same pipeline and
    settings, else StateError; epochs are numbered on. One corpus at a time holds a folder, until it is
    closed, abandoned or dropped; after `kill -9` also until each process has ended that was forked beside it.

    A corpus that is dropped ends its threads; `close` waits for them. In a process that was forked while its
    parent had a run every call that needs one raises RuntimeError. After `close` every call is a ValueError.
    After a failure (a full disk) every call raises that failure.
    """

    def __new__(
        cls,
        pipeline: str = "minhash",
        *,
        settings: Sequence[str] = ...,
        workers: int = 1,
        state: str | None = None,
        progress: _Progress | None = None,
    ) -> Corpus:
        """Opens it; with a state, restores its documents. Raises ConfigError, StateError, OSError."""
    def upsert(self, id: str | int, text: str, *, time: float | None = None) -> None:
        """Inserts a document or replaces its text. It is queued; `flush` makes it count.

        `time` in seconds since 1970, for a retention. Raises TypeError, or ValueError for an id of no
        allowed length. For pipelines with further fields use `upsert_many`.
        """
    def upsert_many(
        self,
        frame: _Frame,
        *,
        text: str = "text",
        id: str = "id",
        time: str | None = None,
        nulls: _Nulls | Literal["delete"] = "error",
        progress: _Progress | None = None,
    ) -> int:
        """As `upsert` for each row in order; returns the number of documents upserted. A null text with
        "delete" deletes the document. A null id is a ValueError. After an exception the rows before it
        have been queued; a batch is checked before any of its rows is.

        Waits while more is queued than is worked off. Cuts epochs by itself, so that memory is bounded.
        """
    def delete(self, id: str | int, /) -> None:
        """Deletes a document; nothing happens if there is none."""
    def flush(self) -> Table:
        """Ends the epoch, waits until it is durable, and returns how the pairs have changed since the last
        `flush`: `epoch` (int64, the one that ended), `diff` (int64, 1 or -1), `a`, `b`, `similarity`
        (float64), of containment `in_a` and `in_b`, and `cause` (string: "insert", "update", "delete",
        …), sorted by (a, b, diff).

        All tables added up are the pairs of `pairs()`. After an interruption the epoch still ends; its
        changes are in the next table. After an interruption between the return and the use of the table
        `unreceived` does the same.
        """
    @property
    def flushes(self) -> int:
        """How many tables `flush` has returned."""
    def unreceived(self, flushes: int, /) -> None:
        """This thread was interrupted before it had the last table of `flush`, if there were `flushes` before
        it: the next one has its changes too."""
    def similar(
        self, text: str, *, top: int = 10
    ) -> list[tuple[str | int, float, float | None, float | None]]:
        """The documents that a text would be paired with, best first: at most `top`, at least 1. As of the
        last `flush`, or later.

        Each with its similarity and, of containment, the share of the text's shingles that it has, and of its
        shingles that the text has; else None.
        """
    def pairs(self, *, evidence: bool = False) -> Table:
        """The pairs as of the last `flush`, with the columns of `pairs` above."""
    def clusters(self) -> Table:
        """The clusters as of the last `flush`, with the columns of `clusters` above."""
    def stats(self) -> dict[str, int]:
        """documents: alive, as of the last `flush` or later; pairs, epoch: as of the last `flush`; upserts,
        deletes: since the corpus was opened; queued: upserts and deletes since the last `flush`."""
    def close(self) -> None:
        """Flushes, ends the threads and waits for them. Further calls do nothing."""
    def stop(self) -> None:
        """Ends the run at once and without a turn: a call in progress on another thread raises RuntimeError.
        `abandon` then waits for the threads."""
    def abandon(self) -> None:
        """Ends the threads without finishing what is queued, and waits for them."""
    @property
    def closed(self) -> bool: ...
    def __enter__(self) -> Corpus: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        """`close`; after an exception `abandon`."""

@final
class Follow:
    """The deltas of a run over files, folders or object stores, an epoch at a time."""

    def __new__(
        cls,
        inputs: Sequence[str],
        *,
        every: str = "100ms",
        follow: bool = False,
        format: str | None = None,
        text: str = "text",
        id: str = "id",
        time: str = "ts",
        pipeline: str = "minhash",
        settings: Sequence[str] = ...,
        workers: int = 1,
    ) -> Follow:
        """Starts to read, in order, what `dupflow replay` reads. `every` cuts epochs as `--epoch` does;
        "100ms" is "every:100ms". With `follow` the last input is a file that is read on as it grows. `text`,
        `id` and `time` are dotted paths in a record, or columns. Raises ConfigError, OSError."""
    def next(self, *, timeout: float | None = None) -> Table | None:
        """The next epoch that changed a pair, with the columns of `Corpus.flush`; waits for it. None after
        `timeout` seconds, or at the end: see `ended`."""
    @property
    def ended(self) -> bool:
        """Whether the input has ended and every epoch was returned."""
    @property
    def bad_records(self) -> int:
        """Records that were no valid event, so far."""
    def close(self) -> None:
        """Ends the threads and waits for them, but for a reader that waits for its input: it ends with the
        next record."""

def field_columns(pipeline: str, settings: Sequence[str], /) -> list[str]:
    """The columns of a frame that a pipeline reads besides those that a call names, sorted: those of
    `text.fields` and of fields in `pairs.where`. Raises ConfigError.
    """

def keep_columns(pipeline: str, settings: Sequence[str], keep: str | None, /) -> list[str]:
    """The columns of a frame that a rule for keeping reads: that of `keep` or, if it is None, of the
    pipeline. Raises ConfigError.
    """

def every(rule: str, /) -> tuple[float, int]:
    """An epoch rule of a stream whose events have no times: the seconds after its first event and the number
    of events after which an epoch ends, inclusive; `inf` and 0 where it has none. "100ms" is "every:100ms".

    Raises ConfigError.
    """
