#!/usr/bin/env bash
# A Bloom filter with an error rate of 1e-12 says "seen" of 3,461 of 3,461 fingerprints it never saw.
# Guess: with 1,000 random 64-bit fingerprints in a filter of error 1e-12, no other fingerprint is ever found in it.
# Seen: rbloom takes Python's hash() by default, and the hash of a whole number is its remainder by 2^61 - 1. So of each
# fingerprint x, all of x + k (2^61 - 1) are "in" the filter, and -1 is, once -2 is. They are not chance: all are, always.
# Random fingerprints show nothing (0 of 100,000), so a test of the error rate passes.
# Why it matters: 64-bit numbers (SimHash values, block keys, packed ids) are what this field puts into such a filter. The top
# three bits count only as a sum with the rest: ids that hold a shard there, (shard << 61) + n, are equal to the filter
# wherever shard + n is. A hash function given by hand (here of the 8 bytes) has none of it.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
{ python3 -m venv v && v/bin/pip install -q --no-compile --disable-pip-version-check rbloom==1.5.4; } ||
  { echo 'NOT RUN: rbloom 1.5.4 cannot be installed'; exit 77; }
v/bin/python - <<'E'
import hashlib, importlib.metadata, random, sys
from rbloom import Bloom

print("rbloom", importlib.metadata.version("rbloom"), "Python", sys.version.split()[0])
random.seed(1)
inside = [random.getrandbits(64) for _ in range(1000)]
step = 2**61 - 1
shifted = [x + k * step for x in inside for k in range(1, 8) if x + k * step < 2**64]
other = [random.getrandbits(64) for _ in range(100000)]

def ask(name, filter):
    filter.update(inside)
    false = sum(x in filter for x in shifted), sum(x in filter for x in other)
    print(f"{name}: never put in and found: {false[0]} of {len(shifted)} shifted, {false[1]} of {len(other)} random")
    return false

assert ask("default hash", Bloom(1000, 1e-12)) == (len(shifted), 0), "CHANGED: default hash"
strong = lambda x: int.from_bytes(hashlib.blake2b(x.to_bytes(8, "little"), digest_size=16).digest(), "big", signed=True)
assert ask("own hash", Bloom(1000, 1e-12, strong)) == (0, 0), "CHANGED: own hash"

small = Bloom(10, 1e-12)
small.add(-2)
print("-1 in a filter of -2:", -1 in small)
assert -1 in small, "CHANGED: -1 and -2"
E
