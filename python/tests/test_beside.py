"""The page "Coming from another tool" and the program that measures its blocks.

Bug class: a block that does not run any more, a row measured under another tool's name, a count of
`python/bench/beside.py` that is wrong.
"""

import importlib.util
import json
import re
import subprocess
import sys

import pytest
from conftest import ROOT, text_of

SCRIPT = ROOT / "python/bench/beside.py"

# The library that the block of a row imports.
LIBRARIES = {"DuckDB, equal texts": "duckdb", "DuckDB, exact join": "duckdb", "datatrove": "datatrove"}
LIBRARIES |= {"text-dedup": "text_dedup", "rensa": "rensa", "datasketch": "datasketch"}


@pytest.fixture
def beside():
    specification = importlib.util.spec_from_file_location("beside", SCRIPT)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture
def corpus(tmp_path):
    """Six pages: the fourth equals the first, the fifth is an edit of the second (27 of 29 shingles)."""
    texts = [text_of(1), text_of(2), text_of(3), text_of(1), text_of(2, [(29, 1)]), text_of(4)]
    path = tmp_path / "corpus.jsonl"
    rows = [json.dumps({"id": f"page{n}", "text": text}) + "\n" for n, text in enumerate(texts)]
    path.write_text("".join(rows), encoding="utf-8")
    (tmp_path / "pairs.tsv").write_text("page0\tpage3\t1.0\npage1\tpage4\t0.931034483\n", encoding="utf-8")
    return path


def test_each_row_is_the_block_of_its_section(beside):
    page = beside.PAGE.read_text(encoding="utf-8")
    blocks = dict(zip(beside.ROWS, beside.BLOCK.findall(page), strict=True))
    for row, library in LIBRARIES.items():
        section = page[: page.index(blocks[row][1])].rpartition("\n## ")[2].splitlines()[0]
        assert library in blocks[row][1] and section == row.split(",")[0]
    assert all("dupflow replay" in blocks[row][1] for row in beside.ROWS[:2])


def test_the_table_counts_what_is_kept(program, beside, corpus):
    """Near copies: kept 4, none left. Equal texts only: kept 5, one left, and half of the removed agree."""
    pytest.importorskip("duckdb")
    rows = [row for row in beside.ROWS if LIBRARIES.get(row, "duckdb") == "duckdb"]
    command = [sys.executable, SCRIPT, corpus, corpus.with_name("pairs.tsv"), *rows]
    done = subprocess.run(
        [*command, "--dupflow", program, "--rounds", "1"], check=True, capture_output=True, text=True
    )
    table = [re.split(r" *\| *", line)[1:6] for line in done.stdout.splitlines()[2:]]
    near, equal = ["4", "0", "0", "1.000"], ["5", "1", "0", "0.500"]
    assert table == [[row, *(equal if row == "DuckDB, equal texts" else near)] for row in rows]


def test_a_block_that_fails_is_a_row_that_says_why(beside, corpus):
    pairs = corpus.with_name("pairs.tsv")
    command = [sys.executable, SCRIPT, corpus, pairs, "datasketch", "--python", "false"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[2].startswith("| datasketch | it fails without a message |")
