"""Near-duplicate documents, while the corpus changes.

    kept  = dupflow.dedup(frame, text="text", id="url", threshold=0.8)    # the same kind of frame
    pairs = dupflow.pairs(frame, pipeline="exact", threshold=0.7)         # a, b, similarity
    with dupflow.Corpus("minhash", threshold=0.8) as corpus:
        corpus.upsert("a", "some text")
        deltas = corpus.flush()                                           # what this epoch changed

**Frames.** Every function takes a frame of any of these kinds:

| kind | `dedup` returns |
|---|---|
| `pandas.DataFrame` | rows with their index |
| `polars.DataFrame`, `pyarrow.Table`, `pyarrow.RecordBatch`, `datasets.Dataset` | the same |
| a DuckDB relation | a relation of the same connection; its rows are held in memory |
| a dict of columns | a dict; columns of NumPy and pandas, lists and tuples as they were, others as lists |
| a list of texts, of rows (dicts) or of batches | a list |
| a function that returns an iterator of batches | an iterator of batches; the function is called twice |
| an iterator, a `RecordBatchReader` | nothing, since it is read once: take `removed` |
| anything else with `__arrow_c_stream__` | a `pyarrow.Table`, or a `polars.DataFrame` without PyArrow |

A batch is any of these frames. In a list or an iterator a dict is a row if any of its values is a text or
has no length, else it is columns. A stream is read batch by batch; no text is copied beyond one batch.
Without `id` rows are named by their numbers, from 0. Ids keep their type; UUIDs and other extension types
become what they are stored as. In rows and lists values are str, int, float or bool; None, NaN, and `NA` and
`NaT` of pandas, are missing values, and so is a key that a row has not.

**Errors.** `ConfigError` (a ValueError) lists all problems of a pipeline or of settings; `StateError` (a
RuntimeError) is about a state that cannot be continued; a frame that cannot be read is a TypeError or a
ValueError; the rest is OSError. KeyboardInterrupt ends every call within a second.

**Messages** go to `logging`, below the logger "dupflow"; its level when a call begins decides.
"""

from ._calls import clusters, compare, dedup, pairs, plan, removed
from ._corpus import Corpus, follow
from ._dupflow import FEATURES, Comparison, ConfigError, Plan, StateError, __version__
from ._results import Clusters, Delta, Deltas, Member, Pair, Pairs, Removal, Removed, Similar

__all__ = [
    "FEATURES",
    "Clusters",
    "Comparison",
    "ConfigError",
    "Corpus",
    "Delta",
    "Deltas",
    "Member",
    "Pair",
    "Pairs",
    "Plan",
    "Removal",
    "Removed",
    "Similar",
    "StateError",
    "__version__",
    "clusters",
    "compare",
    "dedup",
    "follow",
    "pairs",
    "plan",
    "removed",
]
