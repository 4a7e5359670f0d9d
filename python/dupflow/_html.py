"""Results as HTML, for notebooks. Nothing of a text becomes markup."""

from html import escape
from typing import Any

from . import _dupflow

MOST_PAIRS = 10
"""Pairs whose texts are shown."""

_MOST_ROWS = 20
_MOST_COMMON = 160
"""Characters of a passage that both texts have; the middle of a longer one is left out."""
_MOST_OTHER = 1200
_MOST_COMPARED = 50_000
"""Characters of each text that are compared for display."""

_MARK = "background:rgba(255,170,0,.35);color:inherit"
_CELL = "text-align:left;vertical-align:top;white-space:pre-wrap;overflow-wrap:anywhere;width:50%"


def table(columns: dict[str, list[Any]], count: int) -> str:
    """The first rows of a table of so many."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    first = (values[:_MOST_ROWS] for values in columns.values())
    rows = "".join(f"<tr>{_cells(row)}</tr>" for row in zip(*first, strict=True))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{_more(count - _MOST_ROWS)}"


def line(text: str) -> str:
    """A line of text."""
    return f"<p>{escape(text)}</p>"


def pairs(
    rows: list[tuple[Any, Any, float]], texts: dict[Any, str], others: int, pipeline: str, settings: list[str]
) -> str:
    """Pairs with their texts side by side; what one text has and the other has not is marked."""
    parts = []
    for a, b, similarity in rows:
        cuts = [texts[name][:_MOST_COMPARED] for name in (a, b)]
        passages = _dupflow.compare(cuts[0], cuts[1], pipeline=pipeline, settings=settings).passages
        head = "".join(f'<th style="text-align:left">{escape(str(name))}</th>' for name in (a, b))
        cells = "".join(f'<td style="{_CELL}">{_marked(side)}</td>' for side in passages)
        parts.append(
            f'<table style="width:100%;table-layout:fixed"><caption style="text-align:left">similarity '
            f"{similarity:.4f}</caption><thead><tr>{head}</tr></thead><tbody><tr>{cells}</tr></tbody></table>"
        )
    return "".join(parts) + _more(others)


def _marked(passages: list[tuple[bool, str]]) -> str:
    parts = []
    for is_common, text in passages:
        shown = escape(_shortened(text, _MOST_COMMON if is_common else _MOST_OTHER))
        parts.append(shown if is_common else f'<mark style="{_MARK}">{shown}</mark>')
    return "".join(parts)


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most // 2]} … {text[-most // 2 :]}"


def _cells(values: tuple[Any, ...]) -> str:
    return "".join(f"<td>{escape('' if value is None else str(value))}</td>" for value in values)


def _more(rows: int) -> str:
    return f"<p>and {rows:,} more</p>" if rows > 0 else ""
