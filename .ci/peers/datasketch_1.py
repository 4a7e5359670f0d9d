# packages: datasketch==1.10.0
"""datasketch before 2.0: another scheme, so that an old index finds nothing for a new sketch."""

import datasketch
import numpy
from page import says

says("coming-from.md", "datasketch 2.0 has another scheme than 1.x", "answers its sketches with nothing")
old = datasketch.MinHash(num_perm=4, seed=1)
old.update(b"abc")
index = datasketch.MinHashLSH(params=(2, 2), num_perm=4)
index.insert("a", old)
assert index.query(old) == ["a"]
# datasketch.py asserts that 2.0 makes these of the same text.
NEW = [3252218680, 958213318, 2818587614, 2870362048]
new = datasketch.MinHash(num_perm=4, seed=1, hashvalues=numpy.array(NEW, dtype=numpy.uint64))
assert index.query(new) == []
