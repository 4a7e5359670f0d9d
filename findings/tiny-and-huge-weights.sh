#!/usr/bin/env bash
# Two equal vectors are at cosine distance 0, 1, minus infinity or not a number, depending on the program.
# Guess: a program either normalizes with care, and equal vectors are at distance 0 at any length that their numbers can
# hold, or overflows to infinity or NaN, which is seen. Libraries agree down to about 1e-19 in float32, 1e-154 in doubles.
# Seen: scikit-learn takes float32 vectors shorter than 1e-6 for zero: distance 1, far from overflow. ClickHouse multiplies the
# squared lengths: minus infinity at 1e-13, and at 1e10 1, "nothing in common". SciPy's cosine() gives 1 at 1e10, where its
# cdist() is right. In doubles the same at 1e-100 and 1e100. DuckDB is right at all sizes.
# Why it matters: products of TF-IDF weights and probabilities are of such sizes. A distance of 1 passes every check, and a
# distance of minus infinity is the nearest neighbour of everything. Divide by the largest weight first.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
{ python3 -m venv v && v/bin/pip install -q --no-compile --disable-pip-version-check numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1 \
  duckdb==2.0.1 chdb==4.4.0 chdb-core==26.9.0; } ||
  { echo 'NOT RUN: a package of Python cannot be installed'; exit 77; }
v/bin/python -W ignore - <<'E'
import math
import chdb, duckdb, numpy, scipy, sklearn
from scipy.spatial.distance import cdist, cosine
from sklearn.metrics.pairwise import cosine_distances

print("scikit-learn", sklearn.__version__, "SciPy", scipy.__version__,
      "DuckDB", duckdb.__version__, "chdb", chdb.query("select version()").data().strip())

def distances(kind, scale):
    """Of a vector to an equal one, by program."""
    v = numpy.array([1, 2, 3, 4], kind) * numpy.dtype(kind).type(scale)
    sql, click = ("FLOAT", "toFloat32") if kind == "float32" else ("DOUBLE", "toFloat64")
    seen = {"sklearn": cosine_distances(v[None], v[None].copy())[0, 0], "cosine": cosine(v, v), "cdist": cdist(v[None], v[None], "cosine")[0, 0],
            "DuckDB": duckdb.execute(f"select list_cosine_distance(?::{sql}[], ?::{sql}[])", [v.tolist()] * 2).fetchall()[0][0]}
    a = f"arrayMap(x -> {click}(x), {v.tolist()})"
    seen["ClickHouse"] = chdb.query(f"select cosineDistance({a}, {a})").data().strip()
    words = {n: "nan" if math.isnan(float(d)) else f"{abs(round(float(d), 2)):g}" if math.isfinite(float(d)) else str(float(d)) for n, d in seen.items()}
    print(f"{kind} {scale:g}:", ", ".join(f"{n} {w}" for n, w in words.items()))
    return words

right = distances("float32", 1)
assert set(right.values()) == {"0"}, "CHANGED: at 1"
expected = {1e-8: ("sklearn", "1"), 1e-13: ("ClickHouse", "-inf"), 1e10: ("ClickHouse", "1"), 1e15: ("cosine", "1")}
for scale, (name, word) in expected.items():
    seen = distances("float32", scale)
    assert seen[name] == word and seen["cdist"] == seen["DuckDB"] == "0", f"CHANGED: {name}"
assert distances("float64", 1e-100)["ClickHouse"] == "-inf" and distances("float64", 1e100)["cosine"] == "1", "CHANGED: doubles"
assert distances("float64", 1e-200)["cdist"] == "nan" and distances("float64", 1e200)["DuckDB"] == "0", "CHANGED: doubles"
E
