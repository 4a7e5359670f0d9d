#!/usr/bin/env bash
# 1,024 MinHash values over windows of three bytes are one value.
# Guess: Fingerprints(ndim=1024) over windows of any width estimates the Jaccard similarity of the sets of windows within
# about 0.015; only its cost depends on the width. A text shorter than the window has an empty or refused fingerprint.
# Seen: with windows of 8 bytes and more it does. With windows of 3 bytes all 1,024 values agree or none does: the values
# of the rolling hashes are in the same order in all dimensions, so all minima are taken by one window. The mean is about
# right, each pair is a coin; at 5 bytes the spread is still 0.2 and more. And unrelated texts of 10 bytes agree in 37.5 %
# of the default fingerprint: where a text is shorter than a window the value is 4294967295, and two such values are equal.
# Why it matters: trigrams are the common choice for short texts. The number of values says nothing if they are not
# independent, and a filler that compares equal makes short documents similar.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
{ python3 -m venv v && v/bin/pip install -q --no-compile --disable-pip-version-check stringzillas-cpus==5.3.2 stringzilla==5.3.2 numpy==2.4.6; } ||
  { echo 'NOT RUN: stringzillas-cpus 5.3.2 cannot be installed'; exit 77; }
v/bin/python - <<'E'
import random
import numpy
import stringzilla, stringzillas

print("stringzillas", stringzilla.__version__)
random.seed(3)
text = lambda n: "".join(random.choices("abcdefghijklmnopqrstuvwxyz ", k=n))
spread = {}
for width in (3, 5, 8, 16):
    hasher = stringzillas.Fingerprints(ndim=1024, window_widths=numpy.array([width], dtype="uint64"))
    true, seen = [], []
    for _ in range(40):
        a = text(2000)
        b = a[:1000] + text(1000)
        sets = [{t[i:i + width] for i in range(len(t) - width + 1)} for t in (a, b)]
        true.append(len(sets[0] & sets[1]) / len(sets[0] | sets[1]))
        values, _ = hasher(stringzilla.Strs([a, b]))
        seen.append(float((values[0] == values[1]).mean()))
    spread[width] = numpy.std(seen)
    print(f"width {width:2}: true {numpy.mean(true):.3f}, mean of estimates {numpy.mean(seen):.3f}, "
          f"standard deviation {spread[width]:.3f}, estimates {min(seen):.3f} to {max(seen):.3f}")
    if width == 3:
        assert set(seen) == {0.0, 1.0}, "CHANGED: width 3"
assert spread[5] > 0.1 and spread[8] < 0.04 and spread[16] < 0.04, "CHANGED: spread"

values, _ = stringzillas.Fingerprints(ndim=128)(stringzilla.Strs([text(10) for _ in range(40)]))
agree = [float((values[i] == values[j]).mean()) for i in range(40) for j in range(i)]
print(f"unrelated texts of 10 bytes agree in {min(agree):.3f} to {max(agree):.3f} of the default fingerprint")
assert min(agree) == 0.375 and (values == 2**32 - 1).mean() == 0.375, "CHANGED: short texts"
E
