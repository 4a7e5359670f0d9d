#!/usr/bin/env bash
# One query on one file: w = 0 finds half of the zeros, w < 0 finds zeros; after loading the file it finds what it should.
# Guess: -0.0 equals 0.0, as in IEEE 754 and in Polars, pyarrow and DuckDB. Where they hand a filter to the reader of a file
# format, it changes how much is read, not the answer.
# Seen: Vortex's reader compares doubles in total order: -0.0 is less than 0.0, and not equal. It takes the whole filter over,
# and so one lazy frame of Polars says 1,000 rows with filter(...).collect() and 2,000 with collect().filter(...). pyarrow's
# dataset over the file does the same, and DuckDB's SELECT over that dataset. w < 0 finds all -0.0; w >= 0 and w != 0 differ in
# Polars and pyarrow too, not in DuckDB.
# Why it matters: round(-0.3), a score of 0 times -1, and a mean taken off itself are -0.0; which sign a zero has is seen
# nowhere. "No overlap" is a similarity of 0: counts of such pairs change when a cache or a collect() moves.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
{ python3 -m venv v && v/bin/pip install -q --no-compile --disable-pip-version-check vortex-data==0.93.0 polars==2.1.0 pyarrow==26.0.1 duckdb==2.0.1; } ||
  { echo 'NOT RUN: vortex-data 0.93.0, polars 2.1.0, pyarrow 26.0.1 or duckdb 2.0.1 cannot be installed'; exit 77; }
v/bin/python -W ignore - <<'E'
import importlib.metadata, operator
import duckdb, polars, pyarrow, vortex
from pyarrow.compute import field

print(", ".join(f"{p} {importlib.metadata.version(p)}" for p in ("vortex-data", "polars", "pyarrow", "duckdb")))
vortex.io.write(pyarrow.table({"w": [-0.0, 1.0, 0.0, -1.0] * 1000}), "w.vortex")
file = vortex.open("w.vortex")
lazy, dataset = file.to_polars(), file.to_dataset()
loaded = dataset.to_table()
ask = {"=": operator.eq, "!=": operator.ne, "<": operator.lt, ">=": operator.ge}
right = {"=": 2000, "!=": 2000, "<": 1000, ">=": 3000}
total = {"=": 1000, "!=": 3000, "<": 2000, ">=": 2000}
for sign, compare in ask.items():
    by = polars.col("w"), field("w")
    first = {"Polars": lazy.filter(compare(by[0], 0.0)).collect().height, "pyarrow": dataset.to_table(filter=compare(by[1], 0.0)).num_rows,
             "DuckDB": duckdb.execute(f"select count(*) from dataset where w {sign} 0").fetchall()[0][0]}
    after = {"Polars": lazy.collect().filter(compare(by[0], 0.0)).height, "pyarrow": loaded.filter(compare(by[1], 0.0)).num_rows,
             "DuckDB": duckdb.execute(f"select count(*) from loaded where w {sign} 0").fetchall()[0][0]}
    print(f"w {sign} 0 by the reader: {first}; after loading: {after}")
    assert set(after.values()) == {right[sign]}, "CHANGED: after loading"
    assert first["Polars"] == first["pyarrow"] == total[sign], "CHANGED: by the reader"
    assert sign not in "=<" or first["DuckDB"] == total[sign], "CHANGED: DuckDB"
E
