# packages: rensa==0.5.0
"""rensa: the block of docs/coming-from.md."""

import re

from page import FIRST, PAGES, blocks, kept, run, says, write

(block,) = blocks("coming-from.md", "rensa", "python")
write(PAGES)
run(block)
assert kept() == FIRST

# The pattern of words cuts scripts at vowel signs, which are no letters for Python.
says("coming-from.md", "cut words of Tamil, Hindi and other scripts at vowel signs")
pattern = re.compile(re.search(r're.compile\(r"(.*)"\)', block)[1])
assert pattern.findall("தமிழ்") == ["தம", "ழ"] and pattern.findall("हिन्दी") == ["ह", "न", "द"]
