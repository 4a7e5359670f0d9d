# packages: datatrove[io,processing]==0.10.1 spacy==3.8.18 xxhash==3.8.2
"""datatrove: the block of docs/coming-from.md, short texts, and the number of tasks."""

import shutil
import subprocess
import sys
from pathlib import Path

from datatrove.pipeline.dedup.minhash import MinhashConfig
from page import FIRST, PAGES, blocks, kept, run, says, write

(block,) = blocks("coming-from.md", "datatrove", "python")


def left(rows, block=block):
    for folder in ("kept", "logs", "signatures", "buckets", "remove"):
        shutil.rmtree(folder, ignore_errors=True)
    write(rows)
    run(block)
    return [key for path in sorted(Path("kept").glob("*.jsonl")) for key in kept(path)]


says("coming-from.md", "Its defaults are shingles of five words and 14 bands of 8")
default = MinhashConfig()
assert (default.n_grams, default.num_buckets, default.hashes_per_bucket) == (5, 14, 8)
assert sorted(left(PAGES)) == sorted(FIRST)

says("coming-from.md", "without the guard by `__main__` it does not end")
shutil.rmtree("logs")
Path("open.py").write_text(block.replace('if __name__ == "__main__":', "if True:"), encoding="utf-8")
assert subprocess.run(["timeout", "20", sys.executable, "open.py"], capture_output=True).returncode == 124

says("coming-from.md", "a text of fewer words than `n_grams` is never removed")
assert left([("a", "two words"), ("b", "two words")]) == ["a", "b"]

says("coming-from.md", "datatrove makes all numbers equal and drops diacritics")
words = " ".join(f"{word} 1{n}" for n, (_, line) in enumerate(PAGES) for word in line.split()[:5])
assert len(left([("a", words), ("b", words.replace("1", "7"))])) == 1
assert len(left([("a", words.replace("o", "ö")), ("b", words)])) == 1

says("coming-from.md", "which copy stays depends on their number")
Path("many").mkdir()
for number, key in enumerate(("a", "b", "a-copy", "b-copy")):
    write([row for row in PAGES if row[0] == key], f"many/{number}.jsonl")
parted = block.replace('JsonlReader(".", glob_pattern="pages.jsonl")', 'JsonlReader("many")')
three = parted.replace("config=config)], 1)", "config=config)], 3)", 1).replace("=None)], 1)", "=None)], 3)")
assert sorted(left(PAGES, parted)) == ["a", "b"] and sorted(left(PAGES, three)) == ["a", "b-copy"]
