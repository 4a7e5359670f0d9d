#!/usr/bin/env bash
# HyperLogLog counts ten thousand ids exactly, and a million as 110,661.
# Guess: InsertHash of a 64-bit FNV-1a hash of the id, from Go's standard library, is as good as the sketch's own hash of
# the id; if it were not, small counts would show it first.
# Seen: up to 10,000 ids the sketch is sparse, holds the hashes themselves and is exact. At 100,000 it is dense, takes the
# register from the top 14 bits, and counts 9,328: FNV-1a of strings of five or six digits reaches few of the registers.
# FNV-1, the other one in the standard library, counts 1 of 10 to 1 of 100 at all sizes. Own hash: within 1 %.
# Why it matters: a test with a few thousand documents passes, and the corpus of a million seems to consist of 90 % duplicates.
# Sketches and MinHash need a hash whose every bit depends on every letter; FNV is one for hash tables that take the low bits.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
{ go mod init findings && go get github.com/axiomhq/hyperloglog@v0.3.0; } >log 2>&1 ||
  { cat log; echo 'NOT RUN: the Go module github.com/axiomhq/hyperloglog v0.3.0 cannot be installed'; exit 77; }
cat > main.go <<'E'
package main

import (
	"fmt"
	"hash"
	"hash/fnv"
	"math"
	"os"
	"strconv"

	"github.com/axiomhq/hyperloglog"
)

func hashed(h hash.Hash64, id []byte) uint64 {
	h.Write(id)
	return h.Sum64()
}

func main() {
	fmt.Println("github.com/axiomhq/hyperloglog v0.3.0, precision 14, ids 0, 1, 2 …")
	changed := false
	for _, n := range []int{1000, 10000, 100000, 1000000} {
		own, fnv1a, fnv1 := hyperloglog.New14(), hyperloglog.New14(), hyperloglog.New14()
		for i := range n {
			id := []byte(strconv.Itoa(i))
			own.Insert(id)
			fnv1a.InsertHash(hashed(fnv.New64a(), id))
			fnv1.InsertHash(hashed(fnv.New64(), id))
		}
		share := func(s *hyperloglog.Sketch) float64 { return float64(s.Estimate()) / float64(n) }
		fmt.Printf("%7d ids: own hash %d, FNV-1a %d, FNV-1 %d\n", n, own.Estimate(), fnv1a.Estimate(), fnv1.Estimate())
		if math.Abs(share(own)-1) > 0.03 || (n <= 10000) != (math.Abs(share(fnv1a)-1) < 0.01) || share(fnv1) > 0.2 ||
			n > 10000 && share(fnv1a) > 0.2 {
			changed = true
		}
	}
	if changed {
		fmt.Println("CHANGED")
		os.Exit(1)
	}
}
E
go run .
