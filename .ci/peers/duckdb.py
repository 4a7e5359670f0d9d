# packages: duckdb==2.0.1
"""DuckDB: the blocks of docs/coming-from.md, words of Tamil, and hashes of strings by version."""

import re

import duckdb
from page import FIRST, PAGES, blocks, kept, run, says, write

equal, near = blocks("coming-from.md", "DuckDB", "python")
write(PAGES)
run(equal)
assert len(kept()) == len(PAGES) - 1
run(near)
assert kept() == FIRST

says("coming-from.md", "The patterns of rensa, datasketch and DuckDB on this page cut words of Tamil")
pattern = re.search(r"regexp_extract_all\(lower\(text\), '(.*?)'\)", near)[1].replace("\\\\", "\\")
words = duckdb.execute("SELECT regexp_extract_all('தமிழ்', ?)", [pattern]).fetchall()
assert words == [(["தம", "ழ"],)]

# duckdb_1_1.py and duckdb_1_4.py assert the numbers of these versions.
says("features.md", "DuckDB's `hash` of strings is another one in 1.4 than in 1.1")
assert duckdb.sql("SELECT hash('abc'), hash(7)").fetchall() == [(1924864467101078684, 8736873150706563146)]
