# python: 3.11
# packages: click==8.5.1 click-option-group==0.5.10 datasets==5.2.0 ftfy psutil regex
# packages: rich scipy setuptools bitarray xxhash
# packages: --no-deps text-dedup==0.4.0
"""text-dedup 0.4.0: the block of docs/coming-from.md. Pip needs many minutes for its dependencies."""

import datasets
from page import FIRST, PAGES, blocks, run, says, write
from text_dedup.minhash import NON_ALPHA

(block,) = blocks("coming-from.md", "text-dedup", "sh")
write(PAGES)
run(block, "sh")
assert [key[0] for key in datasets.load_from_disk("kept")["id"][:]] == [
    "c",
    "d",
    "e",
    "f",
    "g",
    "a",
    "b",
    "h",
]

says("coming-from.md", "text-dedup 0.4.0 counts the empty word between two signs")
assert NON_ALPHA.split("a, b") == ["a", "", "b"]

says("coming-from.md", "| `--ngram` (5 words), `--min_length` (5: shorter texts are removed) |")
write([*PAGES, ("short", "four words are here")])
run(block.replace("--ngram 3 --min_length 0", "").replace("--output kept", "--output default"), "sh")
assert len(datasets.load_from_disk("default")["id"][:]) == len(FIRST)
