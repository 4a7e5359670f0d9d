#!/usr/bin/env bash
# 256 MinHash values of two long texts without a common word: 42 % are equal, and with fewer values fewer are.
# Guess: the "rho" sketch samples words (its documentation says so), so it may miss pairs. Values of unrelated texts agree by
# chance only, as those of full MinHash do, and more values make the estimate better.
# Seen: from about 100 words on, the sample fills 90 of 256 places, 48 of 128 or 40 of 64. What is left holds a filler that is
# equal in all texts: unrelated texts of any length agree in 42 %, 39 % or 15 % of the values, those of one word in 97 %. An
# index of 0.8 flags 6 of 10 of them as duplicates at 256 values, 3 of 10 at 128 and none at 64: insert_matrix() and then
# query_duplicate_flags_matrix(). Texts of 50 words do better than longer ones. The one-shot query of the same matrix on an
# empty index flags none: it leaves the fillers out. Full sketches of the same texts: none in all ways.
# Why it matters: the matrix looks the same, and the index takes both kinds. Between a first run (one shot) and a stream that adds
# to the index, most of the corpus becomes duplicates, the more so the more values were paid for.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
{ python3 -m venv v && v/bin/pip install -q --no-compile --disable-pip-version-check rensa==0.5.0; } ||
  { echo 'NOT RUN: rensa 0.5.0 cannot be installed'; exit 77; }
v/bin/python - <<'E'
from importlib.metadata import version
from rensa import RMinHash, RMinHashLSH

print("rensa", version("rensa"))

def ask(words, values, rho):
    """The share of equal values in pairs of 1,000 texts without a common word, and the shares flagged: by index, in one shot."""
    texts = [[f"word-{i}-{j}" for j in range(words)] for i in range(1000)]
    matrix = (RMinHash.digest_matrix_from_token_sets_rho if rho else RMinHash.digest_matrix_from_token_sets)(texts, values, 42)
    rows = matrix.to_rows()
    equal = sum(sum(a == b for a, b in zip(rows[i], rows[i + 1])) for i in range(0, 1000, 2)) / 500 / values
    index = RMinHashLSH(0.8, values, values // 8)
    once = sum(index.query_duplicate_flags_matrix_one_shot(matrix)) / 1000
    index.insert_matrix(matrix)
    flagged = sum(index.query_duplicate_flags_matrix(matrix)) / 1000
    print(f"{'rho' if rho else 'full'}, {words} words, {values} values: {equal:.1%} equal, flagged {flagged:.1%}, in one shot {once:.1%}")
    return equal, flagged, once

for words in (1, 10, 50, 200, 1000):
    assert max(ask(words, 256, False)) == 0, "CHANGED: full sketches"
assert ask(1, 256, True)[:2] > (0.95, 0.99), "CHANGED: one word"
assert ask(50, 256, True)[1] < 0.1, "CHANGED: 50 words"
for words in (200, 1000):
    seen = [ask(words, values, True) for values in (64, 128, 256)]
    assert seen[0][0] < 0.2 < 0.35 < seen[1][0] < seen[2][0], "CHANGED: equal values"
    assert seen[0][1] < 0.05 < 0.2 < seen[1][1] < 0.4 < 0.5 < seen[2][1], "CHANGED: flagged"
    assert max(s[2] for s in seen) < 0.01, "CHANGED: one shot"
E
