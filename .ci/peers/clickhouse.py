# packages: chdb==4.4.0 chdb-core==26.9.0
"""ClickHouse (chdb): the bits that its SimHash functions fill."""

import chdb
from page import says

says("features.md", "ClickHouse's SimHash functions (26.9) fill 32 of the 64 bits")
assert chdb.query("SELECT version()").data().strip('"\n').startswith("26.9.")
TEXT = "concat('the quick ', toString(number), ' brown fox ', toString(number * 7), ' jumps')"
NAMES = ("ngramSimHash", "ngramSimHashUTF8", "wordShingleSimHash", "wordShingleSimHashUTF8")
for name in (*NAMES, *(name.replace("Hash", "HashCaseInsensitive") for name in NAMES)):
    bits = chdb.query(f"SELECT groupBitOr({name}({TEXT})) FROM numbers(10000)").data()
    assert int(bits) == 2**32 - 1, (name, bits)
