# packages: --no-deps dolma==1.2.1
"""dolma: its mixer reads the spans that the block of docs/paragraphs.md makes, and fails without scores."""

import gzip
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

from page import blocks, says

says(
    "paragraphs.md",
    "Spans of dolma 1.2.1 are `[from, to, score]` in characters, and its mixer fails without a score",
)
# The extension alone, which `dolma mix` calls with the same settings. The package imports much beside it.
MIX = "import dolma, sys; dolma.mixer_entrypoint(sys.argv[1])"
FOLDER = Path(importlib.util.find_spec("dolma").origin).parent
(block,) = blocks("paragraphs.md", "Marked in place of removed", "python")
names = {}
exec(block, names)
TEXT, MARKS = "Größe\n\nשלום footer 𠮷\n\nkept", [[9, 31]]
TAKEN_OUT = names["without"](TEXT, MARKS)
assert TAKEN_OUT == "Größe\n\nkept", TAKEN_OUT


def mixed(spans):
    """The text that the mixer writes, or None if it fails."""
    for folder, more in (
        ("documents", {"text": TEXT}),
        ("attributes/dup", {"attributes": {"repeated": spans}}),
    ):
        Path(folder).mkdir(parents=True, exist_ok=True)
        row = {"id": "1", "source": "s", **more}
        Path(folder, "a.jsonl.gz").write_bytes(gzip.compress(json.dumps(row).encode() + b"\n"))
    replaced = {"span": "$.attributes.repeated", "min_score": 0.5, "replacement": ""}
    stream = {"name": "x", "documents": [str(Path("documents/*").absolute())], "attributes": ["dup"]}
    stream |= {"output": {"path": "mixed", "max_size_in_bytes": 10**6}, "span_replacement": [replaced]}
    settings = {"streams": [stream], "processes": 1, "work_dir": {"input": "in", "output": "out"}}
    command = [sys.executable, "-c", MIX, json.dumps(settings)]
    done = subprocess.run(command, capture_output=True, env={"PYTHONPATH": str(FOLDER)}, timeout=60)
    files = list(Path("mixed").glob("*.gz"))
    result = (
        json.loads(gzip.decompress(files[0].read_bytes()))["text"] if done.returncode == 0 and files else None
    )
    for file in Path("mixed").glob("*"):
        file.unlink()
    return result


assert mixed(names["spans_of_dolma"](TEXT, MARKS)) == TAKEN_OUT
assert mixed(MARKS) is None
assert mixed([[9, 31, 1.0]]) not in (None, TAKEN_OUT)  # bytes are not characters
