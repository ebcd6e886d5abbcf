#!/usr/bin/env python3
"""Compares the NIfTI reader of ssn-io with nibabel and SimpleITK on generated, mutated and given files.

    pip install nibabel SimpleITK numpy
    python tools/nifti_differential.py                      # 3,000 generated and mutated files
    python tools/nifti_differential.py --files FOLDER ...   # files that are there
    python tools/nifti_differential.py --speed              # one 240x240x155 int16 .nii.gz

The goal is "same voxels and affine, or both refuse". Every kind of difference is printed with its number and the
reason; the exit status is 1 if both read a file and disagree, or if a kind of difference has no reason below.

nibabel and ssn-io are compared bit by bit in the values (as doubles) and to 1e-12 in the affine. SimpleITK is
compared with nibabel, to single precision, on the files that ssn-io reads like nibabel.
"""

import argparse
import collections
import gzip
import logging
import math
import multiprocessing
import os
import pathlib
import random
import resource
import struct
import subprocess
import sys
import tempfile
import time
import warnings
import zlib

import nibabel
import numpy as np
import SimpleITK

ROOT = pathlib.Path(__file__).resolve().parents[1]
TYPES = {2: "u1", 4: "i2", 8: "i4", 16: "f4", 64: "f8", 256: "i1", 512: "u2", 768: "u4", 1024: "i8", 1280: "u8"}
UNSUPPORTED = {1: 1, 32: 64, 128: 24, 1536: 128, 1792: 128, 2048: 256, 2304: 32, 0: 0, 3: 8, 255: 8}
MEMORY = 6 << 30
PATIENCE = 20

# Why ssn-io refuses what nibabel reads, by the start of its sentence.
STRICTER = {
    "sizeof_hdr": "nibabel knows NIfTI-1 by its magic and repairs the size; the size is the only sure sign of the byte order",
    "magic": "nibabel takes either magic in either kind of file, and zeros for the end-of-line check of NIfTI-2",
    "a header without the magic": "Analyze 7.5 or a wiped magic",
    "dim[0]": "nibabel guesses the byte order from dim[0] and then reads what comes out",
    "a dimension": "nibabel reads images of no voxels, and FreeSurfer's -1",
    "a FreeSurfer surface": "nibabel turns these dimensions into a vector of points",
    "an image of": "the volume has no sixth or seventh axis",
    "an image with": "time and vector components at once have no place in [c, d, h, w]",
    "a fifth axis": "components whose meaning is not that of a vector",
    "the number of values": "above the limit, or none",
    "datatype": "complex numbers, colors, bits, long doubles: no images for segmentation",
    "bitpix": "nibabel repairs it from datatype; one of the two is wrong",
    "vox_offset": "nibabel takes the header for voxels at 0, cuts fractions off, and lets a negative one pass in pairs",
    "scl_inter": "no finite intercept",
    "sform_code": "nibabel takes unknown codes for 0, nifti_io for a geometry",
    "qform_code": "nibabel takes unknown codes for 0, nifti_io for a geometry",
    "the sform": "not finite or singular; nibabel passes the numbers on",
    "the quaternion": "not finite; nibabel passes the numbers on",
    "pixdim[0]": "nibabel takes any other number for 1, nifti_io a negative one for -1",
    "qoffset_x": "not finite; nibabel passes the numbers on",
    "a voxel size": "nibabel takes 0 for 1 and the absolute value of negative sizes, and passes on what is not a number",
    "the voxel data is": "longer than the header says; nibabel ignores the rest",
    "the compressed data is damaged": "the checksum or the end is wrong; nibabel does not read that far",
    "esize": "an extension that leads out of the header; nibabel reads on into the data",
    "the size of the header": "an extension above the limit",
}
# Why nibabel refuses what ssn-io reads, by a part of its message.
LAXER = {
    "extension": "nibabel stops at extensions that ssn-io only steps over",
}
# Why SimpleITK differs from what the two others read.
ITK = {
    "NIfTI-2": "this version of ITK does not read it",
    "one axis": "ITK reads no images of one axis",
    "sheared": "ITK knows no sheared grids",
    "vector with a slope": "ITK scales only a part of the components, and writes beyond its memory",
    "not finite": "ITK replaces values that are infinite or not a number with 0",
    "single precision": "ITK scales in single precision, and large values become infinite",
    "intercept without slope": "ITK adds the intercept even if the slope is not a number",
    "units": "ITK converts meters and micrometers; nibabel and ssn-io take numbers for millimeters",
    "no form": "ITK has the first voxel at the origin, x to the left and y to the back; the others the middle, left and front",
    "two forms": "sform and qform differ; ITK may take the qform, nibabel and ssn-io take the sform",
    "sizes beside the sform": "ITK takes voxel sizes from pixdim even where the sform says otherwise",
    "two axes": "ITK cuts the directions of a flat image down to two components and makes them perpendicular",
}


class Header:
    """A header by field: names to (offset, struct letters) in both versions."""

    FIELDS = {
        1: dict(sizeof_hdr=(0, "i"), dim=(40, "8h"), intent_code=(68, "h"), datatype=(70, "h"), bitpix=(72, "h"),
                pixdim=(76, "8f"), vox_offset=(108, "f"), scl_slope=(112, "f"), scl_inter=(116, "f"),
                xyzt_units=(123, "b"), descrip=(148, "80s"), qform_code=(252, "h"), sform_code=(254, "h"),
                quatern=(256, "3f"), qoffset=(268, "3f"), srow=(280, "12f"), magic=(344, "4s")),
        2: dict(sizeof_hdr=(0, "i"), magic=(4, "8s"), datatype=(12, "h"), bitpix=(14, "h"), dim=(16, "8q"),
                pixdim=(104, "8d"), vox_offset=(168, "q"), scl_slope=(176, "d"), scl_inter=(184, "d"),
                descrip=(240, "80s"), qform_code=(344, "i"), sform_code=(348, "i"), quatern=(352, "3d"),
                qoffset=(376, "3d"), srow=(400, "12d"), xyzt_units=(500, "i"), intent_code=(504, "i")),
    }

    def __init__(self, version, order):
        self.version, self.order, self.size = version, order, {1: 348, 2: 540}[version]
        self.bytes = bytearray(self.size)
        self.put(sizeof_hdr=self.size)

    def put(self, **fields):
        for name, value in fields.items():
            offset, letters = self.FIELDS[self.version][name]
            values = value if isinstance(value, (list, tuple, np.ndarray)) else [value]
            struct.pack_into(self.order + letters, self.bytes, offset, *values)


def random_form(r, header, twist):
    """Fills in the geometry."""
    form = r.choice(["sform", "sform", "qform", "qform", "both", "none"])
    sizes = [r.choice([1.0, 0.5, 0.9375, 3.3, r.uniform(0.1, 9)]) for _ in range(3)]
    qfac = r.choice([1.0, 1.0, -1.0, 0.0])
    quaternion = np.array([r.gauss(0, 1) for _ in range(4)])
    quaternion /= np.linalg.norm(quaternion)
    bcd = list(quaternion[1:] * (1 if quaternion[0] > 0 else -1))
    if r.random() < 0.3:
        bcd = r.choice([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [0.6, 0.8, 0], [0, 0, math.sqrt(0.5)]])
    affine = np.array([[r.gauss(0, 1) * sizes[j] for j in range(3)] for _ in range(3)])
    if r.random() < 0.8:
        rotation = np.linalg.qr(affine)[0]
        affine = rotation * sizes
    if twist == "sheared":
        form, affine = "sform", affine + 0.3
    if twist == "singular":
        form, affine[:, 2] = "sform", affine[:, 1]
    if twist == "bad sform":
        form, affine[r.randrange(3), r.randrange(3)] = "sform", r.choice([math.nan, math.inf])
    if twist == "qfac":
        form, qfac = "qform", r.choice([2.0, -2.0, math.nan, 0.5])
    if twist == "long quaternion":
        form, length = "qform", r.choice([1 + 1e-8, 1 + 1e-7, 1 + 3e-7, 1 + 1e-5, 1.5, math.nan])
        bcd = [x * length for x in r.choice([[1, 0, 0], [0, 0.6, 0.8]])]
    if twist == "pixdim":
        form = r.choice(["qform", "none", "sform"])
        sizes[r.randrange(3)] = r.choice([0.0, -1.0, math.nan, math.inf])
    origin = [r.uniform(-200, 200) for _ in range(3)]
    if form == "both" and r.random() < 0.6 and math.isfinite(qfac):
        a = math.sqrt(max(0, 1 - sum(x * x for x in bcd)))
        affine = nibabel.quaternions.quat2mat([a, *bcd]) * sizes * [1, 1, -1 if qfac < 0 else 1]
    codes = {"sform": (r.randrange(1, 6), 0), "qform": (0, r.randrange(1, 6)), "none": (0, 0),
             "both": (r.randrange(1, 6), r.randrange(1, 6))}[form]
    if twist == "code":
        codes = (r.choice([-1, 6, 99, 1]), r.choice([-1, 6, 99, 1]))
    header.put(pixdim=[qfac, *sizes, *[r.choice([0.0, 1.0, 2.5])] * 4], quatern=bcd, qoffset=origin,
               srow=np.column_stack([affine, origin]).ravel(), sform_code=codes[0], qform_code=codes[1],
               xyzt_units=r.choice([0, 2, 2, 2, 10, 10, 10, 1, 3]))


def random_dims(r, twist):
    """The field dim, and the intent."""
    i, j, k = (r.randrange(1, 7) for _ in range(3))
    dims, intent = r.choice([([i, j, k], 0)] * 6 + [([i], 0), ([i, j], 0), ([i, j, k, r.randrange(1, 4)], 0),
                                                    ([i, j, k, r.randrange(2, 4)], 0), ([i, j, k, 1, 3], 1007),
                                                    ([i, j, 1, 1, 2], 1007), ([i, j, k, 1, 1, 1, 1], 0)])
    if twist == "dims":
        dims, intent = r.choice([([i, j, k, 2, 2], 1007), ([i, j, k, 1, 2], 0), ([i, j, k, 1, 1, 2], 0),
                                 ([i, j, 0], 0), ([i, -j, k], 0), ([i, j, k, 1, 3], 1006), ([27307, 1, 6], 0)])
    return dims, intent


def random_file(r, folder, name):
    """One file or pair; gives the paths and what is special."""
    version, order = r.choice([1, 1, 1, 2]), r.choice("<<>")
    container = r.choice([".nii", ".nii.gz", ".nii", ".nii.gz", "pair", "pair.gz"])
    single = container.startswith(".nii")
    twists = ["sheared", "singular", "bad sform", "qfac", "long quaternion", "pixdim", "code", "dims", "offset",
              "slope", "type", "bitpix", "trailing", "magic", "sizeof", "extension", "float values"]
    twist = r.choice(twists) if r.random() < 0.5 else "none"
    header = Header(version, order)
    random_form(r, header, twist)
    dims, intent = random_dims(r, twist)
    header.put(dim=[len(dims), *dims, *[r.choice([0, 1])] * (7 - len(dims))], intent_code=intent)

    code = r.choice(list(TYPES))
    bits = 8 * np.dtype(TYPES[code]).itemsize
    if twist == "type":
        code, bits = r.choice(list(UNSUPPORTED.items()))
    header.put(datatype=code, bitpix=r.choice([0, 8, 16, 64]) if twist == "bitpix" else bits)
    values = max(0, math.prod(dims))
    data = r.randbytes(values * bits // 8)
    if code in (16, 64) and twist != "float values":
        data = np.array([r.gauss(0, 100) for _ in range(values)]).astype(order + TYPES[code]).tobytes()
    slope, inter = r.choice([(0, 0), (1, 0), (1, 0), (0.37, -12.5), (-2, 3), (1e-3, 0), (1, 5)])
    if twist == "slope":
        bad = [math.nan, math.inf, -math.inf, 0.0]
        slope, inter = r.choice([*bad, 2.0, 1.0]), r.choice([*bad, 7.0])
    header.put(scl_slope=slope, scl_inter=inter)

    least = header.size + 4 if single else 0
    offset, after = least, bytes(4)
    if twist == "extension":
        text = r.randbytes(r.choice([8, 24, 40]))
        size = r.choice([8 + len(text)] * 3 + [0, 7, 1000, -16, 8 + len(text) + 16])
        after = b"\1\0\0\0" + struct.pack(order + "ii", size, r.choice([0, 4, 6, 44])) + text
        offset = least + len(after) - 4 if single else 0
    elif r.random() < 0.2:
        offset += r.choice([16, 48, 1, 7, 160])
    gap = max(0, offset - (header.size + len(after) if single else 0))
    if twist == "offset":
        offset = r.choice([0, 1, 348, least - 4, 352.5, 1e9, -16] if version == 1 else [0, 1, 348, 540, 1 << 40, -16])
        offset = max(offset, -1e30)
    header.put(vox_offset=offset if version == 1 else int(offset))
    magic = {(1, True): b"n+1", (1, False): b"ni1", (2, True): b"n+2\0\r\n\x1a\n", (2, False): b"ni2\0\r\n\x1a\n"}
    header.put(magic=magic[version, single])
    if twist == "magic":
        other = [magic[version, not single], magic[version, single][:3], b"", b"n+3", b"n+2\0\n\n\x1a\n"]
        header.put(magic=r.choice(other))
    if twist == "sizeof":
        header.put(sizeof_hdr=r.choice([0, 347, 349, 888]))
    if twist == "trailing":
        data += r.choice([b"\0", bytes(16), r.randbytes(33)])

    if single:
        parts = {container: bytearray(header.bytes + after + bytes(gap) + data)}
    else:
        parts = {".hdr": bytearray(header.bytes + r.choice([after, after if twist == "extension" else b""])),
                 ".img": bytearray(bytes(gap) + data)}
    mutation = r.choice(["header byte", "header bit", "cut", "splice"]) if r.random() < 0.35 else "none"
    first = parts[next(iter(parts))]
    last = parts[list(parts)[-1]]
    if mutation == "header byte":
        first[r.randrange(header.size)] = r.randrange(256)
    elif mutation == "header bit":
        first[r.randrange(header.size)] ^= 1 << r.randrange(8)
    elif mutation == "cut":
        cut = r.choice([first, last])
        del cut[r.randrange(len(cut) + 1):]
    elif mutation == "splice":
        first[r.randrange(len(first)):r.randrange(len(first))] = r.randbytes(r.randrange(1, 9))

    paths = []
    for suffix, content in parts.items():
        content = bytes(content)
        if container.endswith(".gz"):
            content = bytearray(gzip.compress(content, mtime=0))
            if r.random() < 0.1:
                mutation = "gzip bit"
                content[r.randrange(10, len(content))] ^= 1 << r.randrange(8)
            suffix = suffix.removesuffix(".gz") + ".gz"
        path = folder / (name + suffix)
        path.write_bytes(content)
        paths.append(str(path))
    return paths, f"{twist}, {mutation}"


def written_file(r, folder, name):
    """A file as nibabel or SimpleITK writes it."""
    path = str(folder / (name + r.choice([".nii", ".nii.gz"])))
    shape = [r.randrange(2, 7) for _ in range(r.choice([2, 3, 3, 4]))]
    values = np.random.default_rng(r.randrange(1 << 32)).normal(0, 300, shape)
    values = values.astype(r.choice(["u1", "i2", "i4", "f4", "f8", "u2"]), casting="unsafe")
    if r.random() < 0.5:
        image = SimpleITK.GetImageFromArray(values, isVector=r.random() < 0.3 and len(shape) > 2)
        n = image.GetDimension()
        image.SetSpacing([r.uniform(0.2, 5) for _ in range(n)])
        image.SetOrigin([r.uniform(-99, 99) for _ in range(n)])
        if n == 3:
            image.SetDirection(np.linalg.qr(np.random.default_rng(r.randrange(99)).normal(size=(3, 3)))[0].ravel())
        SimpleITK.WriteImage(image, path)
        return [path], "written by SimpleITK"
    affine = np.eye(4)
    affine[:3] = np.random.default_rng(r.randrange(1 << 32)).normal(size=(3, 4))
    affine[:3, :3] = np.linalg.qr(affine[:3, :3])[0] * [0.7, 0.7, 3]
    kind = r.choice([nibabel.Nifti1Image, nibabel.Nifti2Image])
    image = kind(values, affine)
    if r.random() < 0.5:
        image.set_data_dtype(np.int16)
    nibabel.save(image, path)
    return [path], "written by nibabel"


def canonical(values):
    """The checksum of values with one zero and one not-a-number."""
    values = np.asarray(values, dtype="<f8").ravel(order="F") + 0.0
    values[np.isnan(values)] = np.nan
    return zlib.crc32(values.tobytes())


def by_nibabel(paths):
    """Shape, affine and checksum, or the reason."""
    try:
        image = nibabel.load(paths[-1])
        if not isinstance(image, nibabel.Nifti1Pair):
            return "refused", f"not NIfTI but {type(image).__name__}"
        values = image.get_fdata(dtype=np.float64)
        dims = (*values.shape, *[1] * 7)
        shape = [math.prod(dims[3:7]), dims[2], dims[1], dims[0]]
        return "read", shape, np.asarray(image.affine, dtype=float)[:3], canonical(values)
    except Exception as error:  # any failure to read is a refusal
        return "refused", f"{type(error).__name__}: {error}"


def by_itk(paths):
    """Whether SimpleITK reads the same as nibabel, and which of the known reasons applies where it does not."""
    other = nibabel.load(paths[-1])
    try:
        image = SimpleITK.ReadImage(paths[0])
        values = SimpleITK.GetArrayFromImage(image)
    except Exception as error:
        text = " ".join(str(error).split())
        if "Unable to determine ImageIO" in text and isinstance(other, (nibabel.Nifti2Pair, nibabel.Nifti2Image)):
            return "refused", "NIfTI-2"
        known = {"image dimension of 1.": "one axis", "orthonormal": "sheared"}
        return "refused", next((why for part, why in known.items() if part in text), "? " + text[-120:])
    expected = other.get_fdata(dtype=np.float64)
    vector = image.GetNumberOfComponentsPerPixel() > 1
    if vector:
        values = np.moveaxis(values, -1, 0)
    mine, theirs = values.astype(np.float64).ravel(), expected.ravel(order="F")
    if mine.size != theirs.size:
        return "other shape", f"? {values.shape}, {expected.shape}"
    with np.errstate(all="ignore"):
        scale = np.nanmax(np.where(np.isfinite(theirs), np.abs(theirs), 0), initial=1e-30)
        close = (np.abs(mine - theirs) <= 1e-5 * scale) | (mine == theirs) | (np.isnan(mine) & np.isnan(theirs))
    raw = stored_numbers(paths[0])
    if not close.all():
        unscaled = not math.isfinite(raw["slope"]) or raw["slope"] == 0
        not_finite = not np.isfinite(theirs[~close]).any()
        too_large = (np.abs(theirs[~close]) > np.finfo(np.float32).max).all()
        reasons = {"not finite": not_finite, "intercept without slope": unscaled, "vector with a slope": vector,
                   "single precision": too_large}
        return "other values", next((why for why, applies in reasons.items() if applies), "?")
    n, full = min(image.GetDimension(), 3), image.GetDimension()
    flip = np.array([-1, -1, 1])[:n]
    direction = np.array(image.GetDirection()).reshape(full, full)[:n, :n]
    affine = direction * np.array(image.GetSpacing())[:n] * flip[:, None]
    origin = np.array(image.GetOrigin())[:n] * flip
    size = np.abs(other.affine[:n, :n]).max()
    near = np.abs(affine - other.affine[:n, :n]).max() <= 1e-3 * size
    place = np.abs(origin - other.affine[:n, 3]).max() <= 1e-3 * max(1, np.abs(other.affine[:n, 3]).max())
    if near and place:
        return "same", ""
    header = other.header
    sizes = np.linalg.norm(other.affine[:3, :3], axis=0)
    if header["xyzt_units"] & 7 in (1, 3):
        return "other affine", "units"
    if header["sform_code"] <= 0 and header["qform_code"] <= 0:
        return "other affine", "no form"
    if n == 2:
        return "other affine", "two axes"
    if header["sform_code"] > 0 and header["qform_code"] > 0 and not np.allclose(
            header.get_sform(), header.get_qform(), atol=1e-3):
        return "other affine", "two forms"
    if not np.allclose(sizes, raw["pixdim"], rtol=1e-3):
        return "other affine", "sizes beside the sform"
    return "other affine", "?"


def stored_numbers(path):
    """Slope, intercept and voxel sizes as stored: nibabel forgets or repairs them."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
        start = file.read(540)
    version, order = next((v, o) for o in "<>" for v, size in ((1, 348), (2, 540))
                          if struct.unpack_from(o + "i", start)[0] == size)
    fields = Header.FIELDS[version]
    slope = struct.unpack_from(order + fields["scl_slope"][1], start, fields["scl_slope"][0])[0]
    pixdim = struct.unpack_from(order + fields["pixdim"][1], start, fields["pixdim"][0])
    inter = struct.unpack_from(order + fields["scl_inter"][1], start, fields["scl_inter"][0])[0]
    return {"slope": slope, "inter": inter, "pixdim": pixdim[1:4]}


def in_worker(function, items):
    """Calls in a process with bounded memory and time, and goes on in another if that process dies or hangs."""
    context = multiprocessing.get_context("spawn")

    def start():
        here, there = context.Pipe()
        process = context.Process(target=work, args=(function, there), daemon=True)
        process.start()
        there.close()
        return process, here

    process, pipe = start()
    for item in items:
        result = ("died", "")
        # Twice, because an earlier item may have damaged the memory of the process.
        for _ in range(2):
            try:
                pipe.send(item)
                if pipe.poll(PATIENCE):
                    result = pipe.recv()
                    break
            except (EOFError, OSError):
                pass
            process.kill()
            process, pipe = start()
        yield result
    process.kill()


def work(function, pipe):
    """The other end."""
    quiet()
    while True:
        pipe.send(function(pipe.recv()))


def quiet():
    """For a worker: no more memory than needed, no messages."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    SimpleITK.ProcessObject.GlobalWarningDisplayOff()
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, 2)


def by_dump(dump, files):
    """What ssn-io makes of all files."""
    text = "".join("\t".join(paths) + "\n" for paths in files)
    result = subprocess.run(dump, input=text, capture_output=True, text=True, check=True)
    lines = result.stdout.splitlines()
    assert len(lines) == len(files), "one line to a file"
    for line in lines:
        if line.startswith("refused: "):
            yield "refused", line.removeprefix("refused: ")
            continue
        _, *rest = line.split()
        yield ("read", [int(x) for x in rest[:4]], np.array(rest[4:16], dtype=float).reshape(3, 4), int(rest[16]),
               float(rest[17]))


def kind_of(text, reasons, starts):
    """The reason that fits a sentence."""
    for key in reasons:
        if text.startswith(key) if starts else key in text:
            return key
    return "? " + text[:90]


def compare(ours, theirs):
    """The kind of agreement of two results, and the reason where they differ."""
    if ours[0] == "refused" and theirs[0] in ("refused", "died"):
        return "both refuse", ""
    if ours[0] == "refused":
        return "only nibabel reads", kind_of(ours[1], STRICTER, True)
    if theirs[0] in ("refused", "died"):
        return "only ssn-io reads", kind_of(theirs[1], LAXER, False)
    if ours[1] != theirs[1]:
        return "OTHER SHAPE", f"{ours[1]} {theirs[1]}"
    if ours[3] != theirs[3]:
        return "OTHER VALUES", ""
    scale = np.abs(theirs[2][:, :3]).max()
    if np.abs(ours[2][:, :3] - theirs[2][:, :3]).max() > 1e-12 * scale:
        return "OTHER AFFINE", ""
    if np.abs(ours[2][:, 3] - theirs[2][:, 3]).max() > 1e-12 * max(1, np.abs(theirs[2][:, 3]).max()):
        return "OTHER AFFINE", ""
    return "same", ""


def table(title, counts, reasons):
    """Prints kinds with numbers and reasons."""
    print(f"\n{title}\n")
    for (kind, key), count in sorted(counts.items(), key=lambda item: (item[0][0], -item[1])):
        why = reasons.get(key, "")
        print(f"{count:>6}  {kind:<22} {key}{': ' if key and why else ''}{why}")


def run_comparison(dump, files, labels):
    ours = list(by_dump(dump, files))
    theirs = list(in_worker(by_nibabel, files))
    counts, alarming, read_alike = collections.Counter(), [], []
    for paths, label, a, b in zip(files, labels, ours, theirs):
        kind, key = compare(a, b)
        counts[kind, key] += 1
        if kind == "same":
            read_alike.append(paths)
        if kind.isupper() or key.startswith("?"):
            alarming.append((paths, label, kind, key, a[1] if a[0] == "refused" else "", b[1] if b[0] == "refused" else ""))
    table(f"{len(files)} files: ssn-io and nibabel {nibabel.__version__}", counts, {**STRICTER, **LAXER})
    itk = collections.Counter()
    for paths, (kind, key) in zip(read_alike, in_worker(by_itk, read_alike)):
        if kind == "died":
            shape = nibabel.load(paths[-1]).shape
            raw = stored_numbers(paths[0])
            key = "vector with a slope" if len(shape) == 5 and (raw["slope"], raw["inter"]) != (1, 0) else "?"
        itk[kind, key] += 1
        if key.startswith("?"):
            alarming.append((paths, "SimpleITK", kind, key))
    title = f"{len(read_alike)} files that both read alike: SimpleITK {SimpleITK.Version_VersionString()}"
    table(title, itk, ITK)
    for line in alarming[:40]:
        print("  unexplained:", *line)
    return not alarming


def run_speed(dump, folder):
    """Reading, with values in double precision on both sides; best of five."""
    r = np.random.default_rng(0)
    i, j, k = np.ogrid[:240, :240, :155]
    inside = ((i - 120) / 80) ** 2 + ((j - 120) / 100) ** 2 + ((k - 77) / 70) ** 2 < 1
    values = np.where(inside, 300 + r.normal(0, 40, inside.shape), 0).astype(np.int16)
    path = folder / "speed.nii.gz"
    nibabel.save(nibabel.Nifti1Image(values, np.eye(4)), path)
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        nibabel.load(path).get_fdata()
        seconds.append(time.perf_counter() - start)
    ours = [result[4] for result in by_dump(dump, [[str(path)]] * 5)]
    a, b = min(ours), min(seconds)
    print(f"{path.stat().st_size} bytes: ssn-io {a:.3f} s, nibabel {b:.3f} s, ratio {a / b:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dump", help="the example `dump`, built; otherwise cargo builds it")
    parser.add_argument("--count", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--files", nargs="+", type=pathlib.Path, help="files or folders instead of generated ones")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder to keep generated files in")
    options = parser.parse_args()
    manifest = ["--manifest-path", str(ROOT / "Cargo.toml")]
    dump = [options.dump] if options.dump else ["cargo", "run", "-q", "--release", *manifest, "-p", "ssn-io",
                                                "--example", "dump"]
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or pathlib.Path(temporary)
        folder.mkdir(exist_ok=True)
        if options.speed:
            run_speed(dump, folder)
            return 0
        if options.files:
            found = [p for f in options.files for p in (sorted(f.rglob("*.nii*")) if f.is_dir() else [f])]
            made = [([str(p)], "given") for p in found]
        else:
            r = random.Random(options.seed)
            makers = [random_file] * 9 + [written_file]
            made = [r.choice(makers)(r, folder, f"{number:05}") for number in range(options.count)]
        return 0 if run_comparison(dump, [paths for paths, _ in made], [label for _, label in made]) else 1


if __name__ == "__main__":
    sys.exit(main())
