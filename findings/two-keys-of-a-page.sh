#!/usr/bin/env bash
# An index of a web archive does not know a page that it holds: the page has another key in another tool.
# Guess: the sort-friendly form of an address (SURT, the key of CDX indexes) is one rule, so that the index of one tool can be
# asked by another, and records of several indexes can be merged by it. Ordinary http addresses have one key.
# Seen: most have. But the Python package drops the slash at the end of a path, makes double slashes one and takes session ids
# out of the query (leaving "?&"); warcio.js, which writes indexes of WACZ files, keeps all three. "/news" and "/news/" are one
# key in the first and two in the second. Both drop "www2.", sort the query and lower its letters.
# Why it matters: the key is what captures of a page are grouped, compared and dropped by. Asked in the other tool, a page whose
# address ends with a slash was never captured; merged, it is two pages with equal texts.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
{ python3 -m venv v && v/bin/pip install -q --no-compile --disable-pip-version-check surt==0.3.1 &&
  npm install --silent --no-fund --no-audit --ignore-scripts warcio@2.4.11 >&2; } ||
  { echo 'NOT RUN: surt 0.3.1 (PyPI) or warcio 2.4.11 (npm) cannot be installed'; exit 77; }
cat > keys.mjs <<'E'
import { getSurt } from 'warcio/utils'
for (const address of process.argv.slice(2)) console.log(getSurt(address))
E
cat > keys.py <<'E'
import subprocess
from importlib.metadata import version
from surt import surt

print("surt", version("surt"), "warcio.js 2.4.11")
session = "0123456789abcdef0123456789abcdef"
equal = ["http://www2.example.com/a/b.html#top", "http://example.com/Page?B=2&a=1", "https://example.com:443/", "http://example.com/a/../b", "http://192.0.2.7/a"]
apart = ["http://example.com/news/", "http://example.com/a//b", f"http://example.com/index.php?id=5&PHPSESSID={session}"]
addresses = equal + ["http://example.com/news"] + apart
keys = dict(zip(addresses, subprocess.run(["node", "keys.mjs", *addresses], check=True, stdout=subprocess.PIPE, text=True).stdout.split()))
for address, key in keys.items():
    print(address, surt(address), "the same" if key == surt(address) else "and " + key)
    assert (key != surt(address)) == (address in apart), "CHANGED: " + address
one, two = "http://example.com/news", "http://example.com/news/"
assert surt(one) == surt(two) and keys[one] != keys[two], "CHANGED: the slash"
E
v/bin/python keys.py
