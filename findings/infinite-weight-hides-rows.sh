#!/usr/bin/env bash
# One infinite weight, and no filter on the weight finds any row of the file.
# Guess: infinity is a double as any other; it fits w > 4 and not w < 3, and has no influence on other rows. Statistics that
# cannot say infinity, as those of Delta (JSON), leave the bound out, and the file is read.
# Seen: the log says "maxValues": {"w": null}. The rows as a pyarrow dataset carry the promise w <= null with them, which
# nothing fits: w = 2, w < 3 and w > 4 return no row, to_pyarrow_table(filters=...) neither, all without an error. Minus
# infinity does the same by the other bound; NaN and 1e300 hide nothing. Filters on other columns, the same library's SQL and
# delete(), and Polars on the same table are right. Beyond the 32 columns that have statistics the filter is right too.
# Why it matters: log(0), 1/0 and TF-IDF of an unknown word are infinite. A job that reads "all documents above the
# threshold" gets none of this file, one that deletes by the same words deletes all of them.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
{ python3 -m venv v && v/bin/pip install -q --no-compile --disable-pip-version-check deltalake==1.6.6 pyarrow==26.0.1 polars==2.1.0; } ||
  { echo 'NOT RUN: deltalake 1.6.6, pyarrow 26.0.1 or polars 2.1.0 cannot be installed'; exit 77; }
v/bin/python -W ignore - <<'E'
import deltalake, polars, pyarrow
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from pyarrow.compute import field

print("deltalake", deltalake.__version__, "pyarrow", pyarrow.__version__, "Polars", polars.__version__)
filters = {"w = 2": lambda c: c == 2.0, "w < 3": lambda c: c < 3.0, "w > 4": lambda c: c > 4.0}

def ask(name, last, column="w", others=0):
    """Counts of rows of a table with the weights 1, 2, 5 and the last one, by filter: by pyarrow, by SQL, by Polars."""
    first = {f"c{i}": [1, 2, 3, 4] for i in range(others)}
    write_deltalake(name, pyarrow.table(first | {"id": [1, 2, 3, 4], "w": pyarrow.array([1, 2, 5, last], pyarrow.float64())}))
    table, seen = DeltaTable(name), []
    for words, make in filters.items():
        sql = QueryBuilder().register("t", table).execute("select count(*) n from t where " + words).read_all()
        seen.append((table.to_pyarrow_dataset().to_table(filter=make(field("w"))).num_rows,
                     pyarrow.table(sql)["n"][0].as_py(), polars.scan_delta(name).filter(make(polars.col("w"))).collect().height))
    other = table.to_pyarrow_dataset().to_table(filter=field("id") == 2).num_rows
    by = [len(table.to_pyarrow_table(filters=[("w", ">", 4.0)])), other]
    print(f"{name}: 1, 2, 5, {last}:", ", ".join(f"{w}: pyarrow {s[0]}, SQL {s[1]}, Polars {s[2]}" for w, s in zip(filters, seen)), by)
    return seen, by

infinity = float("inf")
assert ask("huge", 1e300) == ([(1,) * 3, (2,) * 3, (2,) * 3], [2, 1]), "CHANGED: 1e300"
assert ask("infinite", infinity) == ([(0, 1, 1), (0, 2, 2), (0, 2, 2)], [0, 1]), "CHANGED: infinity"
assert ask("negative", -infinity) == ([(0, 1, 1), (0, 3, 3), (0, 1, 1)], [0, 1]), "CHANGED: minus infinity"
assert [s[0] for s in ask("nan", float("nan"))[0]] == [1, 2, 1], "CHANGED: NaN"
assert ask("beyond", infinity, others=40) == ([(1,) * 3, (2,) * 3, (2,) * 3], [2, 1]), "CHANGED: beyond 32 columns"
print("deleted by w > 4:", DeltaTable("infinite").delete("w > 4")["num_deleted_rows"])
E
