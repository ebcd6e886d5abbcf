#!/usr/bin/env python3
"""Compares the HDF5 reader of ssn-io with h5py.

    pip install numpy h5py
    cargo build -p ssn-io --features hdf5 --example hdf5_dump
    python tools/hdf5_differential.py target/debug/examples/hdf5_dump [--files 1000] [--seed 1]

Random files are made over versions of the format, shapes, types, byte orders, chunks, axes that may grow, filters, fill
values, texts of fixed and variable length, links, attributes and sizes of groups; some datasets are written in part, or
resized. All datasets, their types, shapes and values must be those that h5py reads. The exit status is 1 if anything differs.
"""

import argparse
import pathlib
import random
import subprocess
import sys
import tempfile
import zlib

import h5py
import numpy as np

TYPES = {"u1": "U8", "i1": "I8", "u2": "U16", "i2": "I16", "u4": "U32", "i4": "I32", "u8": "U64", "i8": "I64",
         "f4": "F32", "f8": "F64"}
# Up to what HDF5 1.14 reads: the library must be as new as the files.
VERSIONS = ["earliest", "v108", "v110", "v112", "v114"]
# Members of a group; that of 2000 links needs blocks of blocks, or levels of levels.
SIZES = [0, 1, 3, 7, 8, 9, 30, 300, 2000]

# Links that count as absent.
ABSENT = {"nowhere": h5py.SoftLink("/nothing"), "elsewhere": h5py.ExternalLink("other.h5", "/")}


def storage(r, shape):
    """How a dataset is stored: in one piece, or in chunks of any size with any filters and room to grow."""
    if not shape or r.random() < 0.2:
        return {}
    most = [r.choice([n, n, None, n * 3 + 1]) for n in shape]
    chunks = [r.randint(1, max(1, n if limit == n else n + 2)) for n, limit in zip(shape, most)]
    if any(limit is not None and side > limit for side, limit in zip(chunks, most)):
        return {}
    options = {"chunks": tuple(chunks), "maxshape": tuple(most)}
    if r.random() < 0.5:
        options["compression"] = "gzip"
    return options | {"shuffle": r.random() < 0.3, "fletcher32": r.random() < 0.3}


def numbers(r, group, name):
    kind = r.choice("<>") + r.choice(list(TYPES))
    shape = tuple(r.choice([0, 1, 2, 5, 9, 40]) for _ in range(r.randint(0, 4)))
    if r.random() < 0.1:
        shape = (r.randint(1000, 3000),)
    fill = r.choice([None, 7])
    dataset = group.create_dataset(name, shape, kind, fillvalue=fill, **storage(r, shape))
    values = np.random.default_rng(r.randrange(1 << 32)).integers(0, 100, shape).astype(kind)
    if r.random() < 0.8:
        dataset[...] = values
    elif shape and 0 not in shape:
        dataset[shape[0] // 2] = values[shape[0] // 2]
    if r.random() < 0.2 and dataset.chunks:
        limits = [n if n is not None else 50 for n in dataset.maxshape]
        dataset.resize(tuple(r.randint(0, limit) for limit in limits))


def texts(r, group, name):
    count = r.choice([0, 1, 5, 100, 3000])
    values = ["ü" * (i % 3) + "x" * r.choice([0, 3, 40, r.randint(0, 900)]) for i in range(count)]
    if r.random() < 0.5:
        kind, values = h5py.string_dtype(), np.array(values, dtype=object)
    else:
        size = r.choice([2000, 4000])
        kind = r.choice([h5py.string_dtype(length=size), f"S{size}"])
        values = np.array([text.encode() for text in values], dtype=kind)
    options = {"chunks": (r.randint(1, min(count, 1000)),), "compression": "gzip"} if count and r.random() < 0.4 else {}
    group.create_dataset(name, data=values, dtype=kind, **options)


def make(r, path):
    with h5py.File(path, "w", libver=(r.choice(VERSIONS), VERSIONS[-1]), userblock_size=r.choice([0, 0, 512, 2048])) as file:
        for number in range(r.randint(1, 4)):
            group = file.create_group(f"group {number}" + "/below" * r.randint(0, 3), track_order=r.random() < 0.3)
            for member in range(r.randint(0, 5)):
                r.choice([numbers, numbers, numbers, texts])(r, group, f"{member}")
            for attribute in range(r.choice([0, 0, 2, 20])):
                group.attrs[f"attribute {attribute}"] = "x" * r.randint(0, 100)
            first = next(iter(group), None)
            if first is not None:
                many = file.create_group(f"links {number}", track_order=r.random() < 0.3)
                if group[first].nbytes < 100:
                    for link in range(r.choice(SIZES)):
                        many[f"{'n' * r.randint(0, 30)} {link}"] = group[first]
                many["soft"] = h5py.SoftLink(f"{group.name}/{first}")
                for name, link in ABSENT.items():
                    many[name] = link


def wanted(path):
    """What h5py reads, in the form of the example's lines."""
    found = {}

    def visit(group, prefix):
        for name in group:
            if name in ABSENT:
                continue
            value, place = group[name], prefix + name
            if isinstance(value, h5py.Group):
                visit(value, place + "/")
            elif value.dtype.kind in "SO":
                entries = np.asarray(value[()]).ravel().tolist()
                found[place] = ("text", str(len(entries)), zlib.crc32(b"".join(entry + b"\0" for entry in entries)))
            else:
                kind = value.dtype.newbyteorder("<")
                stored = np.ascontiguousarray(value[()], dtype=kind).tobytes()
                found[place] = (TYPES[kind.str[1:]], ",".join(map(str, value.shape)), zlib.crc32(stored))

    with h5py.File(path) as file:
        visit(file, "")
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    r, datasets, wrong = random.Random(arguments.seed), 0, []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(arguments.files):
            path = pathlib.Path(folder) / f"{number:06}.h5"
            make(r, path)
            run = subprocess.run([arguments.program], input=f"{path}\n", capture_output=True, text=True, check=True)
            lines = [line.split("\t") for line in run.stdout.splitlines()]
            found = {line[1]: (*line[2:4], int(line[4])) for line in lines if line[1] != "refused"}
            expected = wanted(path)
            datasets += len(expected)
            if found != expected:
                differing = [place for place in {**expected, **found} if found.get(place) != expected.get(place)]
                wrong.append(f"{path.name}: {lines[0][2] if not found and lines else differing[:3]}")
            path.unlink()
    print(f"{arguments.files} files with {datasets} datasets; {len(wrong)} files differ")
    print("\n".join(wrong[:20]))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
