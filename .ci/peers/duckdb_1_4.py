# packages: duckdb==1.4.4
"""DuckDB 1.4.4: the hash of a string; that of a whole number has not changed since 1.1."""

import duckdb
from page import says

says("features.md", "DuckDB's `hash` of strings is another one in 1.4 than in 1.1")
assert duckdb.sql("SELECT hash('abc'), hash(7)").fetchone() == (1924864467101078684, 8736873150706563146)
