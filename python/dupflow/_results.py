"""What the functions return: tables that any library of data frames reads, and whose rows are named
tuples."""

import weakref
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from . import _html
from ._columns import Columns
from ._dupflow import Deduplicated, Table
from ._frames import open_frame
from ._libraries import collected

Id = str | int
"""An id as the caller gave it, or a row number, from 0."""

Row = TypeVar("Row")


class Pair(NamedTuple):
    """Two documents that are near-duplicates. With `evidence` the last four are integers and a float."""

    a: Id
    b: Id
    similarity: float
    """From the threshold, inclusive, to 1."""
    in_a: float | None = None
    """Of containment, the share of b's shingles that a has; None for other measures."""
    in_b: float | None = None
    """Of containment, the share of a's shingles that b has."""
    blocks: int | None = None
    """Blocks that both are in."""
    look: int | None = None
    """The look of the filter that decided, from 1."""
    components: int | None = None
    """Components of the sketches that were compared."""
    standard_error: float | None = None
    """Standard error of `similarity`; 0 if it is exact."""


class Member(NamedTuple):
    """A document of a cluster; or, with `document` None, a cluster that is too large for its members to be
    listed."""

    document: Id | None
    cluster: Id
    size: int | None
    """The number of documents of a large cluster; None for a member."""


class Removal(NamedTuple):
    """A document that is removed."""

    id: Id
    kept: Id
    """The document that is kept in its place."""
    cluster: Id
    """The name of their cluster; of containment `kept` again."""
    old: bool | None = None
    """Whether `kept` is a document of `against`; None without it."""


class Delta(NamedTuple):
    """A pair that begins or ends."""

    epoch: int
    diff: int
    """1 if it begins, -1 if it ends."""
    a: Id
    b: Id
    similarity: float
    cause: str
    """"insert", "update", "delete", "expire", …: as `dupflow replay --causes`."""
    in_a: float | None = None
    """Of containment, the share of b's shingles that a has; None for other measures."""
    in_b: float | None = None
    """Of containment, the share of a's shingles that b has."""


class Similar(NamedTuple):
    """A document that a text would be paired with."""

    id: Id
    similarity: float
    in_id: float | None = None
    """Of containment, the share of the text's shingles that the document has; None for other measures."""
    of_id: float | None = None
    """Of containment, the share of the document's shingles that the text has."""


class Result(Generic[Row]):
    """A table. Libraries read it by `__arrow_c_stream__`, as in `polars.DataFrame(result)`; iteration yields
    its rows."""

    _row: ClassVar[Callable[..., Any]]

    def __init__(self, table: Table) -> None:
        self._table = table

    @property
    def column_names(self) -> list[str]:
        """The names of the columns, in order."""
        return self._table.column_names

    @property
    def stats(self) -> dict[str, int]:
        """Counts of the call, as `documents` and `pairs`."""
        return self._table.stats

    def column(self, name: str) -> list[Any]:
        """The values of a column. KeyError if there is none of this name.

        Ids that are dates, times or bytes (also UUIDs, by their bytes) are read by PyArrow or Polars;
        TypeError without both.
        """
        try:
            return self._table.column(name)
        except TypeError:
            frame = collected(self._table)
            if frame is None:
                raise
            return frame.column(name)

    def __len__(self) -> int:
        """The number of rows."""
        return len(self._table)

    def __iter__(self) -> Iterator[Row]:
        names = self.column_names
        for values in zip(*(self.column(name) for name in names), strict=True):
            yield self._row(**dict(zip(names, values, strict=True)))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._table.__arrow_c_schema__()

    def to_arrow(self) -> Any:
        """A `pyarrow.Table`. ImportError without PyArrow."""
        import pyarrow

        return pyarrow.table(self._table)

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame`. ImportError without pandas."""
        import pandas

        return pandas.DataFrame({name: self.column(name) for name in self.column_names})

    def to_polars(self) -> Any:
        """A `polars.DataFrame`. ImportError without Polars."""
        import polars

        return polars.DataFrame(self._table)

    def __repr__(self) -> str:
        counts = "".join(f", {name} {count:,}" for name, count in self.stats.items())
        return f"<dupflow.{type(self).__name__}: {len(self):,} rows{counts}>"

    def _repr_html_(self) -> str:
        try:
            return self._shown()
        except Exception:
            # A notebook would show the traceback instead of the value.
            return _html.line(repr(self))

    def _shown(self) -> str:
        return _html.table({name: self.column(name) for name in self.column_names}, len(self))


class Pairs(Result[Pair]):
    """All pairs: `a`, `b` and `similarity`, of containment also `in_a` and `in_b`, and with `evidence`
    `blocks`, `look`, `components` and `standard_error`. Sorted by the rows of `a`, then of `b`; `a` is in the
    earlier row.

    A notebook shows the texts of the first pairs, with what differs, unless ids repeat. For that it refers to
    the frame: weakly, if the frame allows it, as those of all libraries do.
    """

    _row = Pair
    _texts: "Callable[[list[Any]], dict[Any, str] | None] | None" = None
    _compare: "tuple[str, list[str]]" = ("minhash", [])

    def _shown(self) -> str:
        try:
            compared = self._compared()
        except Exception:
            # The frame may be of other columns by now, or of a connection that is closed.
            compared = None
        return super()._shown() if compared is None else compared

    def _compared(self) -> str | None:
        """The first pairs with their texts, if they are found."""
        shown = min(_html.MOST_PAIRS, len(self))
        a, b = self.column("a")[:shown], self.column("b")[:shown]
        texts = self._texts([*a, *b]) if self._texts is not None else None
        if texts is None:
            return None
        rows = list(zip(a, b, self.column("similarity")[:shown], strict=True))
        return _html.pairs(rows, texts, len(self) - shown, *self._compare)


class Clusters(Result[Member]):
    """Members of clusters: `document`, `cluster` and `size`. A row for each document of a cluster; then one
    for each giant, a cluster above `output.cluster_limit`: without a document, with its size."""

    _row = Member


class Deltas(Result[Delta]):
    """The changes of one epoch: `epoch`, `diff`, `a`, `b`, `similarity`, of containment also `in_a` and
    `in_b`, and `cause`."""

    _row = Delta


class Removed(Result[Removal]):
    """The documents that are removed: `id`, `kept`, `cluster`, and with `against` also `old`."""

    _row = Removal

    def __init__(self, found: Deduplicated) -> None:
        super().__init__(found.removed)
        self._found = found

    @property
    def stats(self) -> dict[str, int]:
        """documents, nulls, kept, removed; with `against` also old."""
        return self._found.stats

    @property
    def mask(self) -> Table:
        """A table of one column, `keep` (bool), with a row for each row of the frame, in its order."""
        return self._found.mask

    def filter(self, frame: Any) -> Any:
        """The rows of a frame that are kept, as the same kind of frame; of an iterator an iterator.

        `frame` has the rows that were deduplicated, in the same order; the same number at least, else
        ValueError.
        """
        opened = open_frame(frame)
        rows = opened.rows()
        if rows is not None and rows != len(self.mask):
            raise ValueError(f"the frame has {rows:,} rows, and {len(self.mask):,} were deduplicated")
        return opened.keep(self._found.mask_bytes)


def reference(data: object) -> Callable[[], Any]:
    """A weak reference to a frame if it allows one, else a strong one."""
    try:
        return weakref.ref(data)
    except TypeError:
        return lambda: data


def texts_of(
    frame: Callable[[], Any], columns: Columns, rows: int
) -> Callable[[list[Any]], dict[Any, str] | None]:
    """Finds the texts of documents in a frame of so many rows.

    None if the frame is gone or has other rows, if it is a stream, which would be read as a whole, or if one
    of the ids repeats: it does not say then which row is in the pair.
    """

    def find(ids: list[Any]) -> dict[Any, str] | None:
        data = frame()
        if data is None:
            return None
        opened = open_frame(data)
        count = opened.rows()
        if count is None or count != rows:
            return None
        places: dict[Any, int] = {}
        known = range(count) if columns.id is None else opened.column(columns.id)
        wanted = set(ids)
        for row, name in enumerate(known):
            if name in wanted and places.setdefault(name, row) != row:
                return None
        if len(places) < len(wanted):
            return None
        mask = bytearray(count)
        for row in places.values():
            mask[row] = 1
        in_order = sorted(places, key=places.__getitem__)
        texts = open_frame(opened.keep(bytes(mask))).column(columns.text)
        return dict(zip(in_order, texts, strict=True)) if None not in texts else None

    return find
