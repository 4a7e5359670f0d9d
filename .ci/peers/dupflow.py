"""dupflow: its blocks of docs/coming-from.md, short texts, and words of Tamil."""

import os
import shutil
from pathlib import Path

from page import FIRST, PAGES, blocks, dupflow, kept, run, says, write

program = os.environ.get("DUPFLOW") or shutil.which("dupflow")
dupflow("--version")
Path("bin").mkdir()
Path("bin/dupflow").symlink_to(Path(program).resolve())
os.environ["PATH"] = os.pathsep.join([str(Path("bin").resolve()), os.environ["PATH"]])
for block in blocks("coming-from.md", "Coming from another tool", "sh"):
    write(PAGES)
    run(block, "sh")
    assert kept() == FIRST

says("coming-from.md", "it is one shingle: copies of it are removed")
write([("a", "two words"), ("b", "two words")])
run(block, "sh")
assert kept() == ["a"]

# Cut at vowel signs, the first two texts had the same words.
says("coming-from.md", "at vowel signs; dupflow does not")
write([("a", "கா மா தா வா"), ("b", "கி மி தி வி"), ("c", "கா மா தா வா")])
run(block, "sh")
assert kept() == ["a", "b"]
