"""Functions of a whole frame: pairs, clusters, what to keep; a plan; two texts."""

import os
from typing import Any, Literal

from . import _dupflow
from ._columns import Columns
from ._frames import open_frame
from ._libraries import Frame
from ._messages import Progress, follow_level, progress_of
from ._results import Clusters, Pairs, Removed, reference, texts_of
from ._settings import Pipeline, Settings, assignments, cores

Keep = str
Nulls = Literal["error", "skip"]


def pairs(
    frame: Any,
    *,
    text: str = "text",
    id: str | None = None,
    time: str | None = None,
    pipeline: Pipeline = "minhash",
    threshold: float | None = None,
    settings: Settings | None = None,
    workers: int | None = None,
    evidence: bool = False,
    nulls: Nulls = "error",
    progress: Progress = False,
) -> Pairs:
    """All near-duplicate pairs of the rows of a frame: `a`, `b`, `similarity`; of containment also `in_a` and
    `in_b`.

    frame: a frame, see `help(dupflow)`. It is read once, batch by batch.
    text: the column of texts. id: the column of ids, of any type (in lists str, int, float or bool); None:
        row numbers from 0. Ids may repeat: rows are compared, whatever their ids. time: seconds since 1970 or
        timestamps, of UTC if they have no zone; only a retention uses it.
    pipeline: the name of a built-in one (minhash, exact, contained, simhash, sectional, weighted, onebit,
        assured, paper, tour), or the path of a pipeline file. threshold: the least similarity of a pair,
        inclusive, above 0 and at most 1; None: the pipeline's own. settings: keys of a pipeline file, as in
        `{"text.shingle": "words:5", "text.fields": {"title": 2}}`.
    workers: threads; None: one for each core. The result is the same for any number.
    evidence: also `blocks`, `look`, `components` and `standard_error` of each pair.
    nulls: what a missing text is, "error" (ValueError) or "skip" (in no pair). An empty text is a document in
        no pair.
    progress: True for a bar, or a function of the number of rows read.

    Raises ConfigError with all problems of pipeline and settings; TypeError for what is no frame, or columns
    of other types; ValueError for missing columns and null texts.
    """
    opened = open_frame(frame)
    columns, options = _options(text, id, time, nulls, pipeline, threshold, settings, workers)
    with progress_of(progress, opened.rows()) as report:
        table = _dupflow.pairs(
            opened.stream(columns), **options, evidence=evidence, nulls=nulls, progress=report
        )
    found = Pairs(table)
    rows = found.stats["documents"] + found.stats["nulls"]
    found._texts = texts_of(reference(frame), columns, rows)
    found._compare = (options["pipeline"], options["settings"])
    return found


def clusters(
    frame: Any,
    *,
    text: str = "text",
    id: str | None = None,
    time: str | None = None,
    pipeline: Pipeline = "minhash",
    threshold: float | None = None,
    settings: Settings | None = None,
    workers: int | None = None,
    nulls: Nulls = "error",
    progress: Progress = False,
) -> Clusters:
    """The clusters of at least two rows that pairs form: `document`, `cluster`, `size`.

    A row for each document of a cluster: its id, the id by which the cluster is named, and no size. Then one
    row for each giant, a cluster of more documents than the setting `output.cluster_limit`: no document, the
    name, the number of documents. Parameters and errors are those of `pairs`.
    """
    opened = open_frame(frame)
    columns, options = _options(text, id, time, nulls, pipeline, threshold, settings, workers)
    with progress_of(progress, opened.rows()) as report:
        return Clusters(_dupflow.clusters(opened.stream(columns), **options, nulls=nulls, progress=report))


def dedup(
    frame: Any,
    *,
    text: str = "text",
    id: str | None = None,
    time: str | None = None,
    pipeline: Pipeline = "minhash",
    threshold: float | None = None,
    settings: Settings | None = None,
    workers: int | None = None,
    keep: Keep | None = None,
    against: Any = None,
    nulls: Nulls = "error",
    progress: Progress = False,
) -> Any:
    """The frame without its near-duplicates: the same kind of frame, with all columns, its rows in their
    order.

    One row of each cluster is kept, and every row in none; also rows without a text, with `nulls="skip"`. Of
    containment, from the largest text down, a row is removed if one that is kept has at least the share
    `output.remove_if` of it; `keep` and `against` are then a ConfigError.

    keep: which one: "smallest" (the default of the pipelines) the first row, "oldest" the least `time`,
        "longest" the most bytes of text in UTF-8, "named" the one that names the cluster, "source-order" the
        first row; by a column, "max:COLUMN" and "min:COLUMN" the greatest and the least number, and
        "priority:COLUMN:A>B" the first of these values. Of equal ones the first row.
    against: a frame with the same columns whose documents are kept already; rows in a cluster with any of
        them are removed, and none of its rows is in the result.

    Other parameters and errors are those of `pairs`. A stream that can be read only once is a TypeError: see
    `removed`.
    """
    opened = open_frame(frame)
    opened.hold()
    found = removed(
        opened,
        text=text,
        id=id,
        time=time,
        pipeline=pipeline,
        threshold=threshold,
        settings=settings,
        workers=workers,
        keep=keep,
        against=against,
        nulls=nulls,
        progress=progress,
    )
    return found.filter(opened)


def removed(
    frame: Any,
    *,
    text: str = "text",
    id: str | None = None,
    time: str | None = None,
    pipeline: Pipeline = "minhash",
    threshold: float | None = None,
    settings: Settings | None = None,
    workers: int | None = None,
    keep: Keep | None = None,
    against: Any = None,
    nulls: Nulls = "error",
    progress: Progress = False,
) -> Removed:
    """What `dedup` removes, and for each removed row the one that is kept: `id`, `kept`, `cluster`.

    With `against` also `old`: whether `kept` is one of its rows. Without `id` the rows of `against` then have
    the first numbers, and those of `frame` follow. `filter` gives the kept rows of a frame with the same
    rows; so this is the way for streams that are read once. Parameters and errors are those of `dedup`.
    """
    opened = open_frame(frame)
    old: Frame | None = None if against is None else open_frame(against)
    columns, options = _options(text, id, time, nulls, pipeline, threshold, settings, workers)
    kept_by = _dupflow.keep_columns(options["pipeline"], options["settings"], keep)
    columns = columns._replace(fields=(*columns.fields, *kept_by))
    with progress_of(progress, _sum(opened, old)) as report:
        found = _dupflow.dedup(
            opened.stream(columns),
            **options,
            keep=keep,
            against=None if old is None else old.stream(columns),
            nulls=nulls,
            progress=report,
        )
    return Removed(found)


def _sum(frame: Frame, old: Frame | None) -> int | None:
    """The rows of both, if they are known."""
    rows, others = frame.rows(), 0 if old is None else old.rows()
    return None if rows is None or others is None else rows + others


def _options(
    text: str,
    id: str | None,
    time: str | None,
    nulls: Nulls,
    pipeline: Pipeline,
    threshold: float | None,
    settings: Settings | None,
    workers: int | None,
) -> tuple[Columns, dict[str, Any]]:
    """The columns to be read, and arguments of the native functions."""
    follow_level()
    name, assigned = os.fspath(pipeline), assignments(threshold, settings)
    required = (text,) if nulls == "error" else ()
    columns = Columns(text, id, time, tuple(_dupflow.field_columns(name, assigned)), required)
    return columns, {
        "text": text,
        "id": id,
        "time": time,
        "pipeline": name,
        "settings": assigned,
        "workers": cores() if workers is None else workers,
    }


def plan(
    pipeline: Pipeline = "minhash",
    *,
    threshold: float | None = None,
    documents: int | None = None,
    settings: Settings | None = None,
    workers: int = 1,
) -> _dupflow.Plan:
    """What a pipeline will find, miss and cost, without running it.

    documents: how many documents the figures are for, at least 1; None: as the pipeline says. `workers`
    counts in the memory. Raises ConfigError with all problems.

        plan("minhash", threshold=0.8, documents=10_000_000).recall(0.85)     # probability, 0 to 1
        plan("minhash", threshold=0.8, documents=10_000_000).bytes_per_document
    """
    return _dupflow.plan(
        os.fspath(pipeline), settings=assignments(threshold, settings), documents=documents, workers=workers
    )


def compare(
    a: str,
    b: str,
    *,
    pipeline: Pipeline = "minhash",
    threshold: float | None = None,
    settings: Settings | None = None,
) -> _dupflow.Comparison:
    """Two texts by every measure, and whether a run would report them: `.jaccard`, `.is_pair`, `.shares`,
    `.passages`, ….

    Raises ConfigError with all problems.
    """
    return _dupflow.compare(a, b, pipeline=os.fspath(pipeline), settings=assignments(threshold, settings))
