#!/usr/bin/env bash
# Three programs compare the same two ssdeep digests and say 69, 69 and 0, or 58, 75 and 50.
# Guess: the digest is what differs between implementations, if anything. A comparison of two given digests is a fixed rule,
# and so a score of 0 to 100 is the same everywhere.
# Seen: the digests are equal, the scores are not. libfuzzy counts a changed letter as two steps, ppdeep as one: of the
# pairs of near copies more than half have other scores, always higher. ssdeep.js has another rule at all: it gives
# fractions, scores unrelated texts above 0, and 0 to a text and its double (69 in the others).
# Why it matters: digests are stored and exchanged so that somebody else can compare them. A threshold that was tuned with one
# program (say 80) passes other pairs in the next.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
{ python3 -m venv v && v/bin/pip install -q --no-compile --disable-pip-version-check ssdeep-wheel==3.4.1.post1 ppdeep==20260221 &&
  npm install --silent --no-fund --no-audit ssdeep.js@0.0.3 >&2; } ||
  { echo 'NOT RUN: ssdeep-wheel 3.4.1.post1 (libfuzzy), ppdeep 20260221 or the npm package ssdeep.js 0.0.3 cannot be installed'; exit 77; }
cat > score.cjs <<'E'
const { similarity } = require('ssdeep.js')
console.log(JSON.stringify(JSON.parse(require('fs').readFileSync('pairs')).map(p => similarity(...p))))
E
cat > score.py <<'E'
import json, random, subprocess
from importlib.metadata import version
import ppdeep, ssdeep

print("ssdeep-wheel", version("ssdeep-wheel"), "ppdeep", version("ppdeep"), "ssdeep.js 0.0.3")
random.seed(3)
words = ["".join(random.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(random.randint(2, 9))) for _ in range(400)]
kinds = {"near copies": [], "a text and its double": [], "unrelated": []}
for _ in range(100):
    text = [random.choice(words) for _ in range(random.choice([100, 300, 1000]))]
    near = [random.choice(words) if random.random() < 0.04 else w for w in text]
    kinds["near copies"].append((text, near))
    kinds["a text and its double"].append((text, text + text))
    kinds["unrelated"].append((text, random.choices(words, k=len(text))))
seen = {}
for kind, pairs in kinds.items():
    texts = [tuple(" ".join(t) for t in p) for p in pairs]
    digests = [tuple(ssdeep.hash(t) for t in p) for p in texts]
    assert digests == [tuple(ppdeep.hash(t) for t in p) for p in texts], "CHANGED: digests"
    json.dump(digests, open("pairs", "w"))
    js = json.loads(subprocess.run(["node", "score.cjs"], check=True, capture_output=True, text=True).stdout)
    seen[kind] = [(ssdeep.compare(*p), ppdeep.compare(*p), s) for p, s in zip(digests, js)]
    print(f"{kind}: ppdeep differs from libfuzzy in {sum(a != b for a, b, _ in seen[kind])} of 100, ssdeep.js in {sum(a != c for a, _, c in seen[kind])};",
          "first (libfuzzy, ppdeep, ssdeep.js):", *[f"({a}, {b}, {c:.1f})" for a, b, c in seen[kind][:3]])
near, double, other = seen.values()
assert all(b >= a for a, b, _ in near) and sum(b > a for a, b, _ in near) > 30 and sum(a != c for a, _, c in near) > 80, "CHANGED: near copies"
assert sum(a > 50 and c == 0 for a, _, c in double) > 50, "CHANGED: doubles"
assert all(a == b == 0 for a, b, _ in other) and sum(c > 0 for _, _, c in other) > 50, "CHANGED: unrelated"
E
v/bin/python score.py
