# packages: duckdb==1.1.3
"""DuckDB 1.1.3: the hash of a string; that of a whole number has not changed since 1.1."""

import duckdb
from page import says

says("features.md", "DuckDB's `hash` of strings is another one in 1.4 than in 1.1")
assert duckdb.sql("SELECT hash('abc'), hash(7)").fetchone() == (14846292297954449589, 8736873150706563146)
