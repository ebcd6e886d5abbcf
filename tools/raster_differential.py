#!/usr/bin/env python3
"""Compares the PNG, JPEG, TIFF and NumPy readers and writers of ssn-io with Pillow, tifffile and NumPy.

    pip install numpy pillow tifffile imagecodecs
    cargo build -p ssn-io --example raster_exchange
    python tools/raster_differential.py target/debug/examples/raster_exchange [--files 3000] [--seed 1]

Random files are made over sizes, types, depths, interlacing, compressions, predictors, byte orders, tiles, planes,
pages, subsamplings and versions. Values, types and shapes must be those that were stored, bit by bit. Those of JPEG must
be near what Pillow (libjpeg-turbo) decodes: within 1 for gray and within 5 for colors; where chroma has at most two columns
libjpeg does not interpolate it, and any difference is counted only. What should be refused must be: pictures one can see
through, TIFF with a palette or with tiles for each channel, and arrays of other things than numbers. Version 0.11 of the
crate `tiff` cannot read all LZW data in tiles (its issue 395); such files are counted. Every PNG, TIFF and NumPy file that is read is written
again, and Pillow, tifffile or NumPy must read the same from it. The exit status is 1 if anything differs.
"""

import argparse
import collections
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import zlib

import numpy as np
import tifffile
from PIL import Image

TYPES = {"U8": "u1", "I8": "i1", "U16": "u2", "I16": "i2", "U32": "u4", "I32": "i4", "U64": "u8", "I64": "i8",
         "F32": "f4", "F64": "f8"}
NUMBERS = list(TYPES.values())
# First column and row, and steps, of the passes of an interlaced PNG.
PASSES = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
# Color type of PNG: its depths and samples.
COLOURS = {0: ([1, 2, 4, 8, 16], 1), 2: ([8, 16], 3), 3: ([1, 2, 4, 8], 1), 4: ([8, 16], 2), 6: ([8, 16], 4)}
REFUSED = "refused"
Near = collections.namedtuple("Near", "values tolerance")


def values(r, shape, kind):
    """Random values of a type; half of the time smooth ones, which compress."""
    g = np.random.default_rng(r.randrange(1 << 32))
    if kind[0] == "f":
        return g.normal(0, 100, shape).astype(kind)
    limits = np.iinfo(kind)
    if r.random() < 0.5:
        return (np.arange(np.prod(shape, dtype=int)).reshape(shape) // 3 % 100).astype(kind)
    return g.integers(limits.min, limits.max, shape, dtype=kind, endpoint=True)


def planes(pixels):
    """[h, w] or [h, w, c] as [c, 1, h, w]."""
    return pixels[None, None] if pixels.ndim == 2 else np.moveaxis(pixels, 2, 0)[:, None]


def size(r):
    return r.choice([(1, 1), (1, 7), (5, 3), (8, 8), (17, 9), (33, 40), (64, 2), (3, 129), (50, 65)])


def png_chunk(kind, content):
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png_rows(pixels, bits):
    """Rows of samples as PNG packs them, without filters."""
    rows = b""
    for row in pixels.reshape(len(pixels), -1):
        if bits >= 8:
            rows += b"\0" + row.astype(">u2" if bits == 16 else "u1").tobytes()
        else:
            unpacked = np.unpackbits(row.astype("u1")[:, None], axis=1)[:, 8 - bits:]
            rows += b"\0" + np.packbits(unpacked.ravel()).tobytes()
    return rows


def png(r, path):
    """A PNG chunk by chunk: every color type and depth, interlaced or not, with a palette or a transparent color."""
    (h, w), color, interlaced = size(r), r.choice(list(COLOURS)), r.random() < 0.5
    depths, samples = COLOURS[color]
    bits = r.choice(depths)
    pixels = np.random.default_rng(r.randrange(1 << 32)).integers(0, 1 << bits, (h, w, samples)).astype("u2")
    expected = planes(pixels[..., :3 if samples > 2 else 1].astype("u2" if bits == 16 else "u1"))
    more = b""
    if samples in (2, 4):
        pixels[..., -1] = (1 << bits) - 1
        if r.random() < 0.3:
            pixels[r.randrange(h), r.randrange(w), -1] = r.randrange((1 << bits) - 1)
            expected = REFUSED
    if color == 3:
        more = png_chunk(b"PLTE", r.randbytes(3 << bits)) + (png_chunk(b"tRNS", b"\0") if r.random() < 0.3 else b"")
    elif color in (0, 2) and r.random() < 0.2:
        key = pixels[r.randrange(h), r.randrange(w)]
        more, expected = png_chunk(b"tRNS", key.astype(">u2").tobytes()), REFUSED
    steps = PASSES if interlaced else [(0, 0, 1, 1)]
    rows = b"".join(png_rows(part, bits) for x, y, dx, dy in steps if (part := pixels[y::dy, x::dx]).size)
    data = zlib.compress(rows)
    cut = r.randrange(len(data))
    header = struct.pack(">IIBBBBB", w, h, bits, color, 0, 0, int(interlaced))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", header) + more + png_chunk(b"IDAT", data[:cut])
                     + png_chunk(b"IDAT", data[cut:]) + png_chunk(b"IEND", b""))
    return expected


def pillow_png(r, path):
    """A PNG as Pillow writes it, with its filters."""
    mode = r.choice(["L", "P", "RGB", "RGBA", "LA", "I;16"])
    return save_pillow(r, path, mode, {"optimize": r.random() < 0.5})


def save_pillow(r, path, mode, options):
    """Writes random pixels of a mode, opaque where there is an alpha channel."""
    kind = {"I;16": "u2", "I": "i4", "F": "f4"}.get(mode, "u1")
    samples = {"LA": 2, "RGB": 3, "RGBA": 4}.get(mode, 1)
    pixels = values(r, (*size(r), *([samples] if samples > 1 else [])), kind)
    if samples in (2, 4):
        pixels[..., -1] = 255
    image = Image.fromarray(pixels)
    if mode == "P":
        image.putpalette(r.randbytes(768))
    image.save(path, **options)
    return planes(pixels if samples == 1 else pixels[..., :3] if samples > 2 else pixels[..., 0])


def jpeg(r, path):
    """A JPEG as Pillow writes it; what it decodes is expected, more or less."""
    pixels = values(r, (*size(r), *r.choice([[], [3]])), "u1")
    options = {"quality": r.choice([5, 50, 90, 100]), "progressive": r.random() < 0.5, "optimize": r.random() < 0.5}
    if pixels.ndim == 3:
        options["subsampling"] = r.choice(["4:4:4", "4:2:2", "4:2:0"])
    if r.random() < 0.3:
        options["restart_marker_blocks"] = r.randrange(1, 5)
    Image.fromarray(pixels).save(path, **options)
    narrow = pixels.shape[1] <= 4 and options.get("subsampling", "4:4:4") != "4:4:4"
    return Near(planes(np.array(Image.open(path))), 255 if narrow else 1 if pixels.ndim == 2 else 5)


def tiff(r, path):
    """A TIFF as tifffile writes it: types, compressions, predictors, byte orders, strips, tiles, planes and pages."""
    color, (h, w) = r.random() < 0.3, size(r)
    options = {"byteorder": r.choice("<>"), "bigtiff": r.random() < 0.2, "metadata": None,
               "compression": r.choice([None, "lzw", "zlib", "packbits"])}
    if r.random() < 0.3:
        options["tile"] = (16, 32)
    elif r.random() < 0.5:
        options["rowsperstrip"] = r.randrange(1, h + 1)
    if color:
        kind, samples = r.choice(["u1", "u2"]), r.choice([3, 4])
        pixels = values(r, (h, w, samples), kind)
        if samples == 4:
            pixels[..., 3] = np.iinfo(kind).max
            options["extrasamples"] = ["unassalpha"]
        options |= {"photometric": "rgb", "planarconfig": r.choice(["contig", "separate"])}
        stored = np.moveaxis(pixels, 2, 0) if options["planarconfig"] == "separate" else pixels
        expected = planes(pixels[..., :3])
    else:
        kind = r.choice([*NUMBERS, "f2"])
        stored = values(r, (h, w) if r.random() < 0.6 else (r.randrange(2, 5), h, w), kind)
        options["photometric"] = "minisblack"
        expected = stored[None] if stored.ndim == 3 else stored[None, None]
        expected = expected.astype("f4") if kind == "f2" else expected
    if options["compression"] in ("lzw", "zlib") and r.random() < 0.5:
        options["predictor"] = 3 if kind[0] == "f" else 2
    tifffile.imwrite(path, stored, **options)
    return REFUSED if "tile" in options and options.get("planarconfig") == "separate" else expected


def pillow_tiff(r, path):
    mode = r.choice(["L", "P", "RGB", "RGBA", "LA", "I;16", "I", "F"])
    options = {"compression": r.choice([None, "tiff_lzw", "tiff_adobe_deflate", "packbits"])}
    expected = save_pillow(r, path, mode, options)
    return REFUSED if mode == "P" else expected


def npy(r, path):
    """An array of any version, order of bytes and axes, or of something that is not read."""
    if r.random() < 0.1:
        other = [np.array([1 + 2j]), np.array(["a"]), np.array([b"a"]), np.array([{}], dtype=object),
                 np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f4")]), np.array(["2020-01-01"], dtype="M8[D]")]
        np.save(path, r.choice(other), allow_pickle=True)
        return REFUSED
    array, expected = array_and_values(r)
    with path.open("wb") as file:
        np.lib.format.write_array(file, array, version=r.choice([(1, 0), (2, 0), (3, 0)]))
    return expected


def array_and_values(r):
    """An array as it is stored, and what should be read from it."""
    kind = r.choice([*NUMBERS, "f2", "?"])
    shape = [r.choice([0, 1, 2, 3, 5, 8]) if r.random() < 0.1 else r.randrange(1, 7) for _ in range(r.randrange(6))]
    array = values(r, shape, "u1" if kind == "?" else kind)
    array = array % 2 == 1 if kind == "?" else array
    expected = array.astype({"?": "u1", "f2": "f4"}.get(kind, kind))
    return np.asarray(array, dtype=np.dtype(kind).newbyteorder(r.choice("<>")), order=r.choice("CF")), expected


MAKERS = {"png": [png, png, pillow_png], "jpg": [jpeg], "tif": [tiff, tiff, pillow_tiff], "npy": [npy]}


def read_array(path, field):
    """What ssn-io read."""
    kind, shape = field.split(" ")
    shape = [int(n) for n in shape.split(",") if n]
    return np.fromfile(f"{path}.raw", "<" + TYPES[kind]).reshape(shape)


def same(a, b):
    """The same type, shape and bits."""
    b = np.asarray(b)
    return a.shape == b.shape and a.dtype == b.dtype.newbyteorder("=") and a.tobytes() == b.astype(a.dtype).tobytes()


def again(path):
    """What the other program reads from the file that ssn-io wrote, in the order [c, d, h, w]."""
    path = path.with_name(f"again.{path.name}")
    if not path.exists():
        return None
    if path.suffix == ".npy":
        return np.load(path)
    if path.suffix == ".tif":
        with tifffile.TiffFile(path) as file:
            pages = np.stack([page.asarray() for page in file.pages])
        return np.moveaxis(pages, -1, 0) if pages.ndim == 4 else pages[None]
    # Pillow reduces PNG with 16 bit colors to 8 bit, so those are left to the comparison of what is read.
    image = Image.open(path)
    stored_bits = path.read_bytes()[24]
    if stored_bits == 16 and image.mode == "RGB":
        return None
    return planes(np.array(image).astype("u2" if stored_bits == 16 else "u1"))


def compare(path, expected, outcome, fields):
    """One word for what came of a file."""
    if outcome == "refused" and "no lzw end code found" in fields[0]:
        return "LZW in tiles refused"
    if outcome == "refused":
        return "both refuse" if isinstance(expected, str) else f"WRONGLY REFUSED: {fields[0]}"
    if isinstance(expected, str):
        return "WRONGLY READ"
    found = read_array(path, fields[0])
    if isinstance(expected, Near):
        return near(found, *expected)
    if not same(found, expected):
        return "OTHER VALUES"
    written = again(path)
    if written is not None and not same(found, written):
        return "OTHER VALUES WRITTEN AGAIN"
    return "same" if written is None else "same, and same written again"


def near(found, expected, tolerance):
    """One word for how near the values of a JPEG are."""
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return "OTHER SHAPE"
    most = int(np.abs(found.astype(int) - expected).max())
    if most > tolerance:
        return "OTHER VALUES"
    if tolerance == 255:
        return "narrow chroma"
    return f"{'gray' if len(found) == 1 else 'color'} within {most}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="the example raster_exchange")
    parser.add_argument("--files", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    r = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as folder:
        expected = {}
        for number in range(arguments.files):
            ending = r.choice(["png", "png", "jpg", "tif", "tif", "npy"])
            maker = r.choice(MAKERS[ending])
            path = pathlib.Path(folder) / f"{number:06}.{ending}"
            expected[path] = (maker.__name__, maker(r, path))
        paths = "".join(f"{path}\n" for path in expected)
        run = subprocess.run([arguments.program], input=paths, capture_output=True, text=True, check=True)
        table, examples = collections.Counter(), []
        for line in run.stdout.splitlines():
            path, outcome, *fields = line.split("\t")
            maker, wanted = expected[pathlib.Path(path)]
            word = compare(pathlib.Path(path), wanted, outcome, fields)
            table[maker, word.split(":")[0]] += 1
            if word.isupper() or ":" in word:
                examples.append(f"{maker} {pathlib.Path(path).name}: {word}")
    for (maker, word), count in sorted(table.items()):
        print(f"{maker:12} {word:32} {count:6}")
    complete = sum(table.values()) == arguments.files
    print(f"{sum(table.values())} of {arguments.files} files; {len(examples)} differ")
    print("\n".join(examples[:20]))
    sys.exit(0 if complete and not examples else 1)


if __name__ == "__main__":
    main()
