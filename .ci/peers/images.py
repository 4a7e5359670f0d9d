# packages: imagehash==4.3.2 dhash==1.4 opencv-contrib-python-headless==5.0.0.93
"""Hashes of images: the difference hash of docs/features.md beside libraries, and OpenCV's average hash."""

import re

import cv2
import dhash
import imagehash
import numpy
from page import blocks, says
from PIL import Image

says("features.md", "with the bits as here (imagehash 4.3, dhash 1.4, goimagehash 1.1)")
(block,) = [code for code in blocks("features.md", "Hashes of images", "python") if "def dhash" in code]
names = {}
exec(re.search(r"^def dhash.*?\n\n", block, re.MULTILINE | re.DOTALL)[0], names)
pixels = numpy.random.default_rng(1).integers(0, 256, (8, 9), dtype=numpy.uint8)
ours = names["dhash"](pixels.tolist())
assert str(imagehash.dhash(Image.fromarray(pixels))) == ours
# dhash scales to 9 x 9 first, so an image of 9 x 9 whose last row is not read.
square = numpy.vstack([pixels, pixels[:1]])
assert f"{dhash.dhash_row_col(Image.fromarray(square), size=8)[0]:016x}" == ours

says("features.md", "OpenCV's average hash is that of imagehash with the bits of each byte reversed")
square = numpy.random.default_rng(2).integers(0, 256, (8, 8), dtype=numpy.uint8)
theirs = cv2.img_hash.averageHash(square).tobytes()
reversed_bits = bytes(int(f"{byte:08b}"[::-1], 2) for byte in theirs)
assert reversed_bits.hex() == str(imagehash.average_hash(Image.fromarray(square))) != theirs.hex()
