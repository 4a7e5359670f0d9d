# packages: datatrove==0.10.1 xxhash==4.1.0
"""datatrove with the newest xxhash, which its extras exclude."""

from datatrove.utils.hashing import HashConfig, create_hash_func
from page import says

says("coming-from.md", "only the extras pin `xxhash<4`, and 4.1.0 is a `TypeError`")
try:
    create_hash_func(HashConfig(precision=64, hash_fc="xxhash"))("a text")
except TypeError:
    pass
else:
    raise AssertionError("it hashes")
