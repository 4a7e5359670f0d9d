# python: 3.12
# packages: text-dedup==0.4.1
"""text-dedup 0.4.1: what `config.toml` has, and what is left of groups."""

import subprocess
import sys
from pathlib import Path

import datasets
from page import FIRST, PAGES, says, text, write
from text_dedup.config import MinHashAlgorithmConfig

CONFIG = """[input]
input_type = "local_files"
file_type = "json"
read_arguments = {{ path = "json", data_files = "pages.jsonl", split = "train", cache_dir = "cache" }}
[algorithm]
algorithm_name = "minhash"
text_column = "text"
num_perm = 128
threshold = {threshold}
num_proc = 1
{more}
[output]
output_dir = "{place}"
[debug]
enable_profiling = false
"""


def left(place, more, rows=PAGES, threshold=0.8):
    write(rows)
    Path("config.toml").write_text(CONFIG.format(place=place, more=more, threshold=threshold))
    subprocess.run([sys.executable, "-m", "text_dedup.minhash"], check=True, capture_output=True)
    return datasets.load_from_disk(place)["id"][:]


says(
    "coming-from.md",
    "| `ngram_size` (1), `min_length` (5) |",
    "**Its defaults leave no copy of most groups**",
    "| `bands`, `rows` |",
)
fields = MinHashAlgorithmConfig.model_fields
assert (fields["ngram_size"].default, fields["min_length"].default) == (1, 5) and {"bands", "rows"} <= set(
    fields
)
assert left("plain", "") == [key for key in FIRST if key not in "ab"]

says("coming-from.md", "(0.4.1 does not)", "the first of each group stays")
checked = "ngram_size = 3\nmin_length = 0\nbands = 16\nrows = 8\ncheck_false_positive = true"
assert left("checked", checked) == FIRST
config = MinHashAlgorithmConfig(
    algorithm_name="minhash", text_column="text", num_perm=128, threshold=0.8, min_length=0
)
assert config.get_ngrams_func()("a, b") == {b"a", b"b"}

# Two pairs of copies share half of their words: one of their bands is equal, and the pair is turned down.
says("coming-from.md", "a pair that was turned down still joins two groups")
one, other = text(1, words=40), text(2, words=40)
near = [("a", one), ("a-copy", one), ("b", f"{one} {other}"), ("b-copy", f"{one} {other}")]
loose = "ngram_size = 1\nmin_length = 0\nbands = 64\nrows = 2\ncheck_false_positive = true"
assert left("joined", loose, near) == ["a"]
