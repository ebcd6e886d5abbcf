"""Compares the NRRD and MetaImage readers and writers of ssn-io with SimpleITK.

    pip install SimpleITK pynrrd numpy
    cargo build -p ssn-io --example itk_exchange
    python tools/itk_differential.py target/debug/examples/itk_exchange

Files come from SimpleITK and pynrrd over types, dimensions, channels, encodings, byte orders, spaces and turned
directions, and from random changes of their header lines. Voxels, spacing, origin and direction must be the same in
both readers; every file that is read is written again and must read the same in SimpleITK. What one side refuses is
counted by its reason. The exit status is 1 if a file that both read differs.
"""

import argparse
import collections
import itertools
import multiprocessing
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import nrrd
import numpy as np
import SimpleITK as sitk

TYPES = ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8"]
NAMES = dict(zip(["U8", "I8", "U16", "I16", "U32", "I32", "U64", "I64", "F32", "F64"], TYPES))
SIZES = {2: (5, 4), 3: (5, 4, 3)}
# How far numbers of a geometry may differ: the last digits of what is computed in another order.
TOLERANCE = 1e-9
# Mutated values of header words; sizes stay small so that no reader is asked for much memory.
WORDS = ["0", "1", "2", "3", "-1", "0.5", "nan", "none", "x", "True", "False", "little", "big", "list", "domain"]


def rotation(rng, dimension):
    """A random rotation, now and then with a mirrored axis, now and then the identity."""
    if rng.random() < 0.2:
        return np.eye(dimension)
    turned, _ = np.linalg.qr(np.random.default_rng(rng.getrandbits(32)).normal(size=(dimension, dimension)))
    return turned


def values(rng, kind, shape):
    generator = np.random.default_rng(rng.getrandbits(32))
    if kind.startswith("f"):
        return generator.normal(size=shape).astype(kind)
    limits = np.iinfo(kind)
    return generator.integers(limits.min, limits.max, size=shape, dtype=kind, endpoint=True)


def itk_files(folder, rng):
    for kind, dimension, channels, end, packed in itertools.product(
        TYPES, (2, 3), (1, 2, 3, 5), ("nrrd", "nhdr", "mha", "mhd"), (False, True)
    ):
        shape = SIZES[dimension][::-1] + ((channels,) if channels > 1 else ())
        image = sitk.GetImageFromArray(values(rng, kind, shape), isVector=channels > 1)
        image.SetSpacing([rng.uniform(0.1, 5) for _ in range(dimension)])
        image.SetOrigin([rng.uniform(-300, 300) for _ in range(dimension)])
        image.SetDirection(rotation(rng, dimension).ravel().tolist())
        path = folder / f"itk-{kind}-{dimension}d-{channels}-{packed}.{end}"
        sitk.WriteImage(image, str(path), useCompression=packed)
        yield path
    for kind, end, packed in itertools.product(TYPES, ("mha", "mhd"), (False, True)):
        image = sitk.GetImageFromArray(values(rng, kind, (2, 3, 4, 5)), isVector=False)
        direction = np.eye(4)
        direction[:3, :3] = rotation(rng, 3)
        image.SetDirection(direction.ravel().tolist())
        image.SetSpacing([rng.uniform(0.1, 5) for _ in range(4)])
        path = folder / f"itk-{kind}-4d-{packed}.{end}"
        sitk.WriteImage(image, str(path), useCompression=packed)
        yield path


def pynrrd_files(folder, rng):
    spaces = ["left-posterior-superior", "right-anterior-superior", "left-anterior-superior", "LPS", "RAS", "LAS", None]
    for kind, space, channels, encoding, end in itertools.product(
        TYPES, spaces, ("none", "first", "last"), ("raw", "gzip"), ("nrrd", "nhdr")
    ):
        vectors = (rotation(rng, 3) * [[rng.uniform(0.1, 5)] for _ in range(3)]).tolist()
        sizes, kinds = list(SIZES[3]), ["domain"] * 3
        at = {"none": None, "first": 0, "last": 3}[channels]
        if at is not None:
            sizes.insert(at, 2)
            kinds.insert(at, "list" if at else "vector")
            vectors.insert(at, [np.nan] * 3)
        # pynrrd writes values in the byte order that their array has.
        order = rng.choice("<>")
        data = values(rng, kind, sizes).astype(order + kind)
        header = {"kinds": kinds, "encoding": encoding, "note": "a: b"}
        if space:
            header |= {"space": space, "space directions": np.array(vectors)}
            header["space origin"] = [rng.uniform(-300, 300) for _ in range(3)]
        else:
            header["spacings"] = [np.nan if i == at else rng.uniform(0.1, 5) for i in range(len(sizes))]
        path = folder / f"pynrrd-{kind}-{space}-{channels}-{encoding}.{end}"
        nrrd.write(str(path), data, header)
        yield path


def mutated(folder, rng, paths, count):
    """Files of others with one or two header lines changed; their data stays as it is."""
    inline = [path for path in paths if path.suffix in (".nrrd", ".mha")]
    for number in range(count):
        path = rng.choice(inline)
        stop = b"\n\n" if path.suffix == ".nrrd" else b"LOCAL\n"
        header, data = path.read_bytes().split(stop, 1)
        lines = header.decode().split("\n")
        for _ in range(rng.choice((1, 1, 2))):
            at = rng.randrange(1, len(lines))
            action = rng.randrange(4)
            if action == 0 and len(lines) > 3:
                del lines[at]
            elif action == 1:
                lines.insert(rng.randrange(1, len(lines)), lines[at])
            elif action == 2:
                lines.insert(rng.randrange(1, len(lines)), lines.pop(at))
            else:
                words = lines[at].split(" ")
                words[rng.randrange(len(words))] = rng.choice(WORDS)
                lines[at] = " ".join(words)
        changed = folder / f"mutated-{number}{path.suffix}"
        changed.write_bytes("\n".join(lines).encode() + stop + data)
        yield changed


def read_itk(path):
    """Values `[c, d, h, w]`, spacing, origin and direction of an image in RAS, as SimpleITK reads it."""
    image = sitk.ReadImage(str(path))
    dimension, channels = image.GetDimension(), image.GetNumberOfComponentsPerPixel()
    array = sitk.GetArrayFromImage(image)
    if dimension == 4:
        if channels > 1:
            raise RuntimeError("four dimensions and channels")
        dimension = 3
    elif channels > 1:
        array = np.moveaxis(array, -1, 0)
    else:
        array = array[None]
    if image.GetDimension() == 2:
        array = array[:, None]
    full = image.GetDimension()
    spacing, origin, direction = np.ones(3), np.zeros(3), np.eye(3)
    spacing[:dimension] = image.GetSpacing()[:dimension]
    origin[:dimension] = image.GetOrigin()[:dimension]
    direction[:dimension, :dimension] = np.reshape(image.GetDirection(), (full, full))[:dimension, :dimension]
    flip = np.diag([-1.0, -1.0, 1.0])
    return array, spacing, flip @ origin, flip @ direction


def serve(pipe):
    sitk.ProcessObject.SetGlobalWarningDisplay(False)
    while True:
        try:
            pipe.send((read_itk(pipe.recv()), None))
        except RuntimeError as error:
            pipe.send((None, str(error).strip().splitlines()[-1]))
        except EOFError:
            return


class Reader:
    """SimpleITK in a process of its own, since some changed headers end the process that reads them."""

    def __init__(self):
        self.pipe, other = multiprocessing.Pipe()
        multiprocessing.Process(target=serve, args=(other,), daemon=True).start()
        other.close()

    def read(self, path):
        """The image, or nothing and the reason."""
        try:
            self.pipe.send(path)
            return self.pipe.recv()
        except (EOFError, OSError):
            self.__init__()
            return None, "the process ends"


def itk_reads_memory(path):
    """Whether ITK fills the image with whatever its memory held: data behind the header, compressed, without a size."""
    header = path.read_bytes().split(b"LOCAL\n", 1)[0]
    return path.suffix == ".mha" and b"CompressedData = True" in header and b"\nCompressedDataSize" not in header


def read_ours(path, answer):
    _, kind, *numbers = answer.split()
    shape = [int(n) for n in numbers[:4]]
    numbers = np.array([float(n) for n in numbers[4:]])
    array = np.fromfile(f"{path}.voxels", dtype="<" + NAMES[kind]).reshape(shape)
    return array, numbers[:3], numbers[3:6], numbers[6:].reshape(3, 3)


def difference(first, second):
    """The name of the first quantity in which two images differ, or nothing."""
    if second is None:
        return "refused"
    (a, *places_a), (b, *places_b) = first, second
    if a.dtype.newbyteorder("=") != b.dtype.newbyteorder("="):
        return f"type {a.dtype} and {b.dtype}"
    if a.shape != b.shape:
        return f"shape {a.shape} and {b.shape}"
    if not np.array_equal(a, b, equal_nan=a.dtype.kind == "f"):
        return "voxels"
    for name, x, y in zip(("spacing", "origin", "direction"), places_a, places_b):
        if not np.allclose(x, y, rtol=TOLERANCE, atol=TOLERANCE):
            return f"{name} {np.round(x, 6).tolist()} and {np.round(y, 6).tolist()}"
    return None


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("program", type=Path, help="the built example itk_exchange")
    arguments.add_argument("--mutated", type=int, default=3000, help="files with changed header lines")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--list", action="store_true", help="name every file that only one side reads")
    arguments = arguments.parse_args()
    rng = random.Random(arguments.seed)
    reader = Reader()

    counts, reasons, differences = collections.Counter(), collections.Counter(), []
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        paths = list(itk_files(folder, rng)) + list(pynrrd_files(folder, rng))
        paths += list(mutated(folder, rng, paths, arguments.mutated))
        answers = subprocess.run(
            [arguments.program], input="".join(f"{path}\n" for path in paths), capture_output=True, text=True, check=True
        ).stdout.splitlines()
        for path, answer in zip(paths, answers, strict=True):
            source = path.name.split("-")[0]
            theirs, refusal = reader.read(path)
            if refusal == "the process ends":
                counts[source, "ITK crashes"] += 1
            read = answer.startswith("ok")
            if not read or theirs is None:
                sides = {(True, False): "only we read", (False, True): "only ITK reads", (False, False): "both refuse"}
                side = sides[read, theirs is not None]
                counts[source, side] += 1
                if side != "both refuse":
                    reason = refusal.split("): ")[-1] if read else answer.removeprefix("refused ")
                    # What was found stands in quotes or brackets, or is a number; the reason is what stands before it.
                    reason = re.split(r'["\[\d(]', reason, maxsplit=1)[0] if not read else reason
                    reasons[side, source, reason[:90]] += 1
                    if arguments.list:
                        print(side, path.name, "|", refusal if read else answer)
                continue
            ours = read_ours(path, answer)
            found = difference(theirs, ours)
            if found == "voxels" and itk_reads_memory(path):
                counts[source, "ITK misreads"] += 1
                continue
            counts[source, "differ" if found else "same"] += 1
            if found:
                differences.append(f"{path.name}: {found}")
            for end in (".raw.nrrd", ".gz.nrrd", ".raw.mha", ".zlib.mha"):
                found = difference(ours, reader.read(f"{path}{end}")[0])
                counts["written", "differ" if found else "same"] += 1
                if found:
                    differences.append(f"{path.name}{end}: {found}")

    for (source, outcome), count in sorted(counts.items()):
        print(f"{source:<10} {outcome:<15} {count:>6}")
    for (side, source, reason), count in sorted(reasons.items(), key=lambda item: -item[1]):
        print(f"{count:>6}  {side} ({source}): {reason}")
    print(f"{len(differences)} differences", *differences[:50], sep="\n")
    sys.exit(1 if differences else 0)


if __name__ == "__main__":
    main()
