#!/usr/bin/env bash
# A delete removes rows that its own filter does not find: documents without a score go with those of the score asked for.
# Guess: delete("score = 2.0") removes what a scan with this filter returns; NaN is equal to nothing, NULL neither equal nor
# unequal, so rows with them stay. What a file happens to hold beside them plays no part.
# Seen: a file whose smallest and largest score both fit the filter is dropped whole, and NaN has no part in smallest and
# largest: all its NaN rows go too, with =, <, >, <=, >= and in. With !=, which the scan answers without the NULL rows, these
# go. One row in the file that does not fit (here 99.0), and both stay: then the file is rewritten row by row.
# Why it matters: NaN is the similarity of empty texts, NULL that of texts not yet compared. "Delete all above the threshold"
# takes them or leaves them, depending on which rows were written together; after sorting by score it takes them most often.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
{ python3 -m venv v && v/bin/pip install -q --no-compile --disable-pip-version-check 'pyiceberg[sql-sqlite]==0.12.0' pyarrow==26.0.1; } ||
  { echo 'NOT RUN: pyiceberg 0.12.0 or pyarrow 26.0.1 cannot be installed'; exit 77; }
v/bin/python -W ignore - <<'E'
import os
import pyarrow, pyiceberg
from pyiceberg.catalog.sql import SqlCatalog

print("pyiceberg", pyiceberg.__version__, "pyarrow", pyarrow.__version__)
catalog = SqlCatalog("c", uri="sqlite:///c.db", warehouse="file://" + os.getcwd())
catalog.create_namespace("n")
nan, tables = float("nan"), 0

def delete(scores, filter):
    """What a scan with the filter finds in one file of these scores, and what is left after a delete with it."""
    global tables
    tables += 1
    rows = pyarrow.table({"score": pyarrow.array(scores, pyarrow.float64())})
    table = catalog.create_table(f"n.t{tables}", schema=rows.schema)
    table.append(rows)
    found = table.scan(row_filter=filter).to_arrow()["score"].to_pylist()
    table.delete(filter)
    left = table.scan().to_arrow()["score"].to_pylist()
    print(f"{scores}, delete {filter}: the scan finds {found}, the delete leaves {left}")
    return str(found), str(left)

for filter in ("score = 2.0", "score > 1.0", "score < 3.0", "score >= 2.0", "score <= 2.0", "score in (2.0)"):
    assert delete([nan, 2.0], filter) == ("[2.0]", "[]"), "CHANGED: NaN and " + filter
assert delete([None, 2.0], "score != 3.0") == ("[2.0]", "[]"), "CHANGED: NULL and !="
assert delete([None, 2.0], "score = 2.0") == ("[2.0]", "[None]"), "CHANGED: NULL and ="
assert delete([nan, 2.0, 99.0], "score < 3.0") == ("[2.0]", "[nan, 99.0]"), "CHANGED: a file that does not fit"
assert delete([None, 2.0, 99.0], "score != 99.0") == ("[2.0]", "[None, 99.0]"), "CHANGED: a file that does not fit"
E
