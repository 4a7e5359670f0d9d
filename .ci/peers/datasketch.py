# packages: datasketch==2.0.0 xxhash==4.1.0
"""datasketch: the block of docs/coming-from.md, its own index, and the scheme of 2.0 beside that of 1.x."""

import re

import datasketch
from page import FIRST, PAGES, blocks, kept, run, says, write

(block,) = blocks("coming-from.md", "datasketch", "python")
write(PAGES)
run(block)
assert kept() == FIRST
pattern = re.compile(re.search(r're.compile\(r"(.*)"\)', block)[1])
assert pattern.findall("தமிழ்") == ["தம", "ழ"]

says("comparison.md", "delete by key where supported")
index, sketch = datasketch.MinHashLSH(threshold=0.8, num_perm=128), datasketch.MinHash(num_perm=128, seed=1)
sketch.update(b"abc")
index.insert("a", sketch)
assert index.query(sketch) == ["a"]
index.remove("a")
assert index.query(sketch) == []

# datasketch_1.py asserts that an index of 1.10 finds nothing for these.
says("coming-from.md", "datasketch 2.0 has another scheme than 1.x")
sketch = datasketch.MinHash(num_perm=4, seed=1)
sketch.update(b"abc")
assert sketch.hashvalues.tolist() == [3252218680, 958213318, 2818587614, 2870362048]
