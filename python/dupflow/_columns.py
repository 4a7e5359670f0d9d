"""Columns: those that a call reads, and lists of objects of Python as tables of the native module."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timezone
from numbers import Real
from typing import Any, NamedTuple

from ._dupflow import Table

CHUNK = 1000
"""Rows of Python objects that are copied into one batch."""


class Columns(NamedTuple):
    """The columns that a call reads."""

    text: str
    id: str | None = None
    time: str | None = None
    fields: tuple[str, ...] = ()
    """Those that the pipeline names: further texts, and fields of `pairs.where`."""
    required: tuple[str, ...] = ()
    """Those in which a missing value is an error."""

    @property
    def named(self) -> list[str]:
        return list(dict.fromkeys(name for name in (self.text, self.id, self.time) if name is not None))

    @property
    def read(self) -> list[str]:
        return list(dict.fromkeys((*self.named, *self.fields)))

    def of(self, names: Iterable[str]) -> list[str]:
        """Those to be read of a frame with columns of these names. ValueError if one is missing, or if there
        are several of its name."""
        known = list(names)
        for name in self.read:
            if name not in known:
                listed = ", ".join(f'"{other}"' for other in known)
                raise ValueError(f'the frame has no column "{name}"; its columns: {listed}')
            if known.count(name) > 1:
                raise ValueError(f'{known.count(name)} columns of the frame are called "{name}"')
        return self.read


def chunks(values: Mapping[str, Any], columns: Columns) -> Iterator[Table]:
    """Tables of columns of Python, each of some rows, at least one."""
    rows = check_lengths(values)
    for start in range(0, max(1, rows), CHUNK):
        # An index of a series may be of numbers.
        parts = {name: getattr(part, "iloc", part)[start : start + CHUNK] for name, part in values.items()}
        yield table_of({name: listed(part) for name, part in parts.items()}, columns)


def check_lengths(values: Mapping[str, Any]) -> int:
    """The number of rows of columns of Python. TypeError for what is no column, ValueError for columns of
    different lengths."""
    for name, column in values.items():
        if isinstance(column, (str, bytes)) or not hasattr(column, "__len__"):
            raise TypeError(
                f'column "{name}": a list or an array is expected, not {type(column).__name__}; '
                "a row is passed in a list"
            )
    lengths = {name: len(column) for name, column in values.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"columns of different lengths: {lengths}")
    return next(iter(lengths.values()), 0)


def table_of(values: Mapping[str, list[Any]], columns: Columns) -> Table:
    """A table of columns. TypeError for values that are none of str, int, float and bool."""
    return Table.from_columns({name: _cells(column, name == columns.time) for name, column in values.items()})


def _cells(values: list[Any], are_times: bool) -> list[Any]:
    """The values of a column, with None for missing ones and seconds for times."""
    if set(map(type, values)) <= {str, int, bool, type(None)}:
        return values
    return [seconds(value) if are_times else _cell(value) for value in values]


def _cell(value: Any) -> Any:
    """A value with None for a missing one, and float for fractions of other libraries."""
    if is_missing(value):
        return None
    is_fraction = isinstance(value, Real) and not isinstance(value, float) and not hasattr(value, "__index__")
    return float(value) if is_fraction else value


def listed(values: Any) -> list[Any]:
    """A column as a list of objects of Python."""
    libraries = {base.__module__.partition(".")[0] for base in type(values).__mro__}
    if "pandas" in libraries and hasattr(values, "dtype"):
        import pandas

        # An index or an array too.
        series = pandas.Series(values)
        objects: list[Any] = series.astype(object).where(series.notna(), None).tolist()
        return objects
    if getattr(getattr(values, "dtype", None), "kind", None) == "M":
        # Its `tolist` has times of nanoseconds as integers.
        return list(values)
    for name in ("tolist", "to_pylist", "to_list"):
        if hasattr(values, name):
            found: list[Any] = getattr(values, name)()
            return found
    return list(values)


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, or what NumPy and pandas have for it."""
    kind = type(value).__name__
    if value is None or kind in ("NAType", "NaTType"):
        return True
    return (isinstance(value, Real) or kind == "datetime64") and bool(value != value)


def seconds(value: Any) -> Any:
    """The seconds since 1970 of a `datetime` or a `numpy.datetime64`, which are of UTC without a zone;
    another value as `_cell` has it."""
    value = _cell(value)
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=timezone.utc)).timestamp()
    if type(value).__name__ == "datetime64":
        return int(value.astype("datetime64[us]").astype("int64")) / 1e6
    return value
