#!/usr/bin/env bash
# A bitmap of ids takes 2^32 + 3 for 3 in one way of filling it, and for nothing in another.
# Guess: RoaringBitmap32 holds 32 bits, so an id that does not fit raises a RangeError, or is treated alike by all methods.
# Seen: the constructor, addMany and from keep the lowest 32 bits: 2^32 + 3 becomes 3, and -1 the largest id. add, tryAdd and has
# ignore such a number without an error: has(2^32 + 3) is false in the bitmap that was just made of it, has(3) is true.
# Why it matters: sets of seen or deleted documents are kept in such bitmaps. An id from a longer sequence (JavaScript's
# numbers hold 53 bits exactly) marks another document as seen, or is forgotten; which of both depends on whether ids
# come one by one or in lists. Check the range yourself, or keep the upper bits in a map of bitmaps.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
npm install --silent --no-fund --no-audit roaring@2.7.0 >log 2>&1 ||
  { cat log; echo 'NOT RUN: the npm package roaring 2.7.0 cannot be installed'; exit 77; }
cat > ids.cjs <<'E'
const { RoaringBitmap32 } = require('roaring')
console.log('roaring', require('roaring/package.json').version, 'node', process.version)
const ids = [2 ** 32 + 3, -1, 7]
const ways = {
  'constructor': () => new RoaringBitmap32(ids),
  'from': () => RoaringBitmap32.from(ids),
  'addMany': () => { const b = new RoaringBitmap32(); b.addMany(ids); return b },
  'add': () => { const b = new RoaringBitmap32(); for (const id of ids) b.add(id); return b },
  'tryAdd': () => { const b = new RoaringBitmap32(); for (const id of ids) b.tryAdd(id); return b },
}
const seen = {}
for (const [name, fill] of Object.entries(ways)) {
  let b
  try { b = fill(); seen[name] = String([...b]) } catch (error) { seen[name] = `${error.name}: ${error.message}` }
  console.log(`${name} of [2^32 + 3, -1, 7]: ${seen[name]}`, b ? `has(2^32 + 3) ${b.has(2 ** 32 + 3)}, has(3) ${b.has(3)}` : '')
  const expected = name.endsWith('dd') ? '7' : '3,7,4294967295'
  if (seen[name] !== expected || b.has(2 ** 32 + 3)) { console.log('CHANGED:', name); process.exit(1) }
}
E
node ids.cjs
