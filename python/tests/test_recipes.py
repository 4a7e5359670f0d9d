"""The page of recipes: every block runs, in order, and prints what the page says.

A section begins with its heading, and its blocks run in one folder that holds generated inputs in the
layouts of public corpora. A block of `sh` runs with `dupflow` on the path, one of `python` in a process of
its own; the block of `text` after one is its standard output.

Bug class: a recipe that does not run, that loses a column, or that writes other rows than it says.
"""

import gzip
import json
import os
import re
import subprocess
import sys
from collections import Counter

import pytest
from conftest import ROOT, run, text_of

PAGE = ROOT / "docs/recipes.md"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# Each of the corpora has these texts, in two files of three. The fourth is an edit of the first.
TEXTS = [text_of(1), text_of(2), text_of(3), text_of(1, [(29, 1)]), text_of(4), text_of(5)]
KEPT = [TEXTS[n] for n in (0, 1, 2, 4, 5)]


def sections(page=PAGE):
    """The blocks of a page by heading."""
    parts = re.split(r"^## (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = {name: BLOCK.findall(text) for name, text in zip(parts[1::2], parts[2::2], strict=True)}
    return {name: blocks for name, blocks in found.items() if blocks}


def fineweb(number):
    return {
        "text": TEXTS[number],
        "id": f"<urn:uuid:00000000-0000-4000-8000-{number:012}>",
        "dump": "CC-MAIN-2024-10",
        "url": f"https://example.org/{number}",
        "date": f"2024-02-2{number}T08:00:00Z",
        "file_path": "s3://commoncrawl/crawl-data/CC-MAIN-2024-10/segments/1/warc/part.warc.gz",
        "language": "en",
        "language_score": 0.9 + number / 100,
        "token_count": 40 + number,
    }


def write_parquet(path, rows):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)


def write_lines(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(lines) if path.suffix == ".gz" else lines)


def wet_record(number):
    block = (TEXTS[number] + "\n").encode()
    head = (
        "WARC/1.0\r\nWARC-Type: conversion\r\n"
        f"WARC-Target-URI: https://example.org/{number}\r\nWARC-Date: 2024-02-2{number}T08:00:00Z\r\n"
        f"WARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{number:012}>\r\n"
        f"Content-Type: text/plain\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return gzip.compress(head.encode() + block + b"\r\n\r\n")


@pytest.fixture
def corpora(tmp_path):
    """The folder in which the blocks run."""
    for shard, numbers in enumerate([range(3), range(3, 6)]):
        write_parquet(tmp_path / f"fineweb/000_0000{shard}.parquet", [fineweb(n) for n in numbers])
        write_lines(
            tmp_path / f"c4/c4-train.0000{shard}-of-00002.json.gz",
            [
                {"text": TEXTS[n], "timestamp": f"2019-04-2{n}T08:00:00Z", "url": f"https://example.org/{n}"}
                for n in numbers
            ],
        )
        wet = tmp_path / f"wet/CC-MAIN-20240220080000-0000{shard}.warc.wet.gz"
        wet.parent.mkdir(exist_ok=True)
        wet.write_bytes(b"".join(map(wet_record, numbers)))
        write_parquet(
            tmp_path / f"hub/data/train-0000{shard}-of-00002.parquet",
            [{"text": TEXTS[n], "label": n} for n in numbers],
        )
        write_lines(
            tmp_path / f"extracted/{['AA', 'AB'][shard]}/wiki_00",
            [
                {
                    "id": str(n),
                    "revid": str(n + 100),
                    "url": f"https://en.wikipedia.org/wiki?curid={n}",
                    "title": f"Page {n}",
                    "text": TEXTS[n],
                }
                for n in numbers
            ],
        )
    return tmp_path


@pytest.fixture
def run_blocks(program, corpora, tmp_path_factory):
    """Runs the blocks of a section."""
    programs = tmp_path_factory.mktemp("programs")
    (programs / "dupflow").symlink_to(program.resolve())
    path = os.pathsep.join([str(programs), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(programs)}
    environment.pop("RUST_LOG", None)
    commands = {"sh": ["sh", "-e", "-c"], "python": [sys.executable, "-c"]}

    def run_blocks(blocks):
        printed = None
        for language, block in blocks:
            if language == "text":
                assert block == printed
                continue
            done = subprocess.run(
                [*commands[language], block], cwd=corpora, env=environment, capture_output=True, text=True
            )
            assert done.returncode == 0, f"{block}\n{done.stderr}"
            printed = done.stdout

    return run_blocks


@pytest.mark.parametrize("name", sections())
def test_blocks_print_what_the_page_says(name, program, run_blocks):
    blocks = sections()[name]
    code = "".join(block for language, block in blocks if language != "text")
    if "parquet" in code and "parquet" not in run(program, "--version").decode().split():
        pytest.skip("the program has no feature parquet")
    for library in ("datasets", "duckdb", "pandas", "polars", "pyarrow"):
        if re.search(rf"^(?:import|from) {library}\b", code, re.MULTILINE):
            pytest.importorskip(library)
    run_blocks(blocks)


def test_every_layout_has_a_section_that_reads_it(corpora):
    code = "".join(block for blocks in sections().values() for _, block in blocks)
    layouts = sorted(path.name for path in corpora.iterdir())
    assert layouts == ["c4", "extracted", "fineweb", "hub", "wet"]
    assert all(re.search(rf"^dupflow replay .* {layout}/", code, re.MULTILINE) for layout in layouts)


def test_kept_records_are_those_of_the_input(program, corpora, run_blocks):
    """Counted without dupflow: of all five layouts the same texts stay, with all their columns."""
    for layout, name in [("c4", "C4 as JSON Lines"), ("extracted", "Wikipedia extracts")]:
        run_blocks(sections()[name])
        before, after = (lines_of(corpora / place) for place in (layout, f"{layout}-clean"))
        assert not after - before and sorted(json.loads(line)["text"] for line in after) == sorted(KEPT)
    run_blocks(sections()["A folder of WET files"])
    for file in sorted((corpora / "wet").iterdir()):
        records = [wet_record(n) for n in range(6)]
        first = records[:3] if "00000.warc" in file.name else records[4:]
        expected = b"".join(map(gzip.decompress, first))
        assert gzip.decompress((corpora / "wet-clean" / file.name).read_bytes()) == expected


def lines_of(folder):
    """The lines of all files below a folder, with how often each is there."""
    found = Counter()
    for path in filter(lambda path: path.is_file(), sorted(folder.rglob("*"))):
        data = path.read_bytes()
        found.update((gzip.decompress(data) if path.suffix == ".gz" else data).splitlines())
    return found
