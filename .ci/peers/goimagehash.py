"""goimagehash: the bits of its difference hash are those of docs/features.md."""

import shutil
import subprocess
from pathlib import Path

from page import blocks, says, skip

says("features.md", "with the bits as here (imagehash 4.3, dhash 1.4, goimagehash 1.1)")
PROGRAM = """package main

import (
	"fmt"
	"image"
	"image/color"

	"github.com/corona10/goimagehash"
)

func main() {
	grey := image.NewGray(image.Rect(0, 0, 9, 8))
	for y := 0; y < 8; y++ {
		for x := 0; x < 9; x++ {
			grey.SetGray(x, y, color.Gray{uint8((x*x*37 + y*y*91 + x*y*53) % 256)})
		}
	}
	hash, err := goimagehash.DifferenceHash(grey)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%016x", hash.GetHash())
}
"""
if not shutil.which("go"):
    skip("goimagehash", "there is no Go")
Path("main.go").write_text(PROGRAM)
for step in (["mod", "init", "peer"], ["get", "github.com/corona10/goimagehash@v1.1.0"]):
    done = subprocess.run(["go", *step], capture_output=True, text=True)
    if done.returncode != 0:
        skip("goimagehash", done.stderr.strip().splitlines()[-1])
theirs = subprocess.run(["go", "run", "."], capture_output=True, text=True, check=True).stdout
(block,) = [code for code in blocks("features.md", "Hashes of images", "python") if "def dhash" in code]
names = {}
exec(block[block.index("def dhash") : block.index("\n\n\nwith open")], names)
rows = [[(x * x * 37 + y * y * 91 + x * y * 53) % 256 for x in range(9)] for y in range(8)]
assert theirs == names["dhash"](rows), theirs
