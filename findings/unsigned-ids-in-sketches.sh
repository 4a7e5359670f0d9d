#!/usr/bin/env bash
# A HyperLogLog sketch counts 10,000 different ids as 6.
# Guess: Python's datasketches takes whole numbers of 64 bits, signed or not, as its documentation says "integral value"; a
# number that does not fit raises. Sketches of the same ids from Java and from Python are equal and can be united.
# Seen: from 2^63 on, HLL and theta sketches silently take the id as a floating-point number, so 2,048 neighbours are one.
# CPC counts rightly up to 2^64, and from there as the others. Java knows these ids as negative longs: its theta sketch of
# the same 1,000 ids and Python's have Jaccard similarity 0.0; with the ids given as negative numbers it is 1.0. Random
# 64-bit ids hide it: their count is right in each language alone, and in the union it is half too much.
# Why it matters: 64-bit hashes of shingles and documents are what is counted and compared here. Half of all have the top bit.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
get() { mvn -q -B -Dstyle.color=never org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy -Dartifact="$1" -DoutputDirectory="$work/lib"; }
{ python3 -m venv v && v/bin/pip install -q --no-compile --disable-pip-version-check datasketches==5.2.0 numpy==2.4.6 &&
  get org.apache.datasketches:datasketches-java:6.2.0 && get org.apache.datasketches:datasketches-memory:3.0.2; } ||
  { echo 'NOT RUN: datasketches 5.2.0 or datasketches-java 6.2.0 cannot be installed'; exit 77; }
cat > Ids.java <<'E'
import org.apache.datasketches.theta.*;
class Ids {
  public static void main(String[] a) throws Exception {
    UpdateSketch high = UpdateSketch.builder().build(), random = UpdateSketch.builder().setNominalEntries(1 << 15).build();
    for (long i = 0; i < 1000; i++) high.update(Long.parseUnsignedLong("9223372036854775808") + i);
    for (String id : java.nio.file.Files.readAllLines(java.nio.file.Path.of("ids"))) random.update(Long.parseUnsignedLong(id));
    java.nio.file.Files.write(java.nio.file.Path.of("high"), high.compact().toByteArray());
    java.nio.file.Files.write(java.nio.file.Path.of("random"), random.compact().toByteArray());
  }
}
E
cat > ids.py <<'E'
import importlib.metadata, os, random
import datasketches as d

print("datasketches", importlib.metadata.version("datasketches"), "with datasketches-java 6.2.0")
def counted(sketch, ids):
    for i in ids:
        sketch.update(i)
    return sketch
kinds = {"HLL": lambda: d.hll_sketch(14), "theta": lambda: d.update_theta_sketch(14), "CPC": lambda: d.cpc_sketch(12)}
for name, make in kinds.items():
    seen = [round(counted(make(), range(start, start + 10000)).get_estimate()) for start in (2**62, 2**63, 2**64)]
    print(f"{name}: 10,000 ids from 2^62 on count as {seen[0]}, from 2^63 on as {seen[1]}, from 2^64 on as {seen[2]}")
    assert abs(seen[0] - 10000) < 300 and (seen[1] > 9700 if name == "CPC" else seen[1] < 10) and seen[2] < 10, "CHANGED: " + name
random.seed(1)
ids = [random.getrandbits(64) for _ in range(10000)]
open("ids", "w").write("\n".join(map(str, ids)))
assert os.system("java -cp 'lib/*' Ids.java") == 0
high, other = (d.compact_theta_sketch.deserialize(open(name, "rb").read()) for name in ("high", "random"))
for name, start in ("2^63 + i", 2**63), ("-2^63 + i", -2**63):
    own = counted(d.update_theta_sketch(12), range(start, start + 1000))
    similarity = d.theta_jaccard_similarity.jaccard(high, own.compact())[1]
    print(f"Java's sketch of 1,000 ids and Python's, given as {name}: Jaccard similarity {similarity}")
    assert similarity == (0.0 if start > 0 else 1.0), "CHANGED: Java and Python"
own, union = counted(d.update_theta_sketch(15), ids), d.theta_union(15)
union.update(own); union.update(other)
print("10,000 random ids: Java", other.get_estimate(), "Python", own.get_estimate(), "union", union.get_result().get_estimate())
assert other.get_estimate() == own.get_estimate() == 10000 and union.get_result().get_estimate() > 14500, "CHANGED: union"
E
v/bin/python ids.py
