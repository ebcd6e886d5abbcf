#!/usr/bin/env python3
"""Writes the hostile files of this folder; see README.md. Needs nothing but Python."""

import gzip
import pathlib
import struct
import zlib

FOLDER = pathlib.Path(__file__).parent


def header(dim=(3, 2, 2, 2, 1, 1, 1, 1), vox_offset=352.0, srow=(1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0)):
    """A NIfTI-1 header of int16 with an sform, and the four bytes after it."""
    out = bytearray(352)
    struct.pack_into("<i", out, 0, 348)
    struct.pack_into("<8h", out, 40, *dim)
    struct.pack_into("<hh", out, 70, 4, 16)
    struct.pack_into("<8f", out, 76, *[1.0] * 8)
    struct.pack_into("<3f", out, 108, vox_offset, 1.0, 0.0)
    struct.pack_into("<h", out, 254, 1)
    struct.pack_into("<12f", out, 280, *srow)
    out[344:348] = b"n+1\0"
    return out


def header2(dim, datatype=2, magic=b"n+2\0\r\n\x1a\n"):
    """A NIfTI-2 header with an sform, and the four bytes after it."""
    out = bytearray(544)
    struct.pack_into("<i8s", out, 0, 540, magic)
    struct.pack_into("<hh", out, 12, datatype, 8)
    struct.pack_into("<8q", out, 16, *dim)
    struct.pack_into("<qdd", out, 168, 544, 1.0, 0.0)
    struct.pack_into("<i", out, 348, 1)
    struct.pack_into("<12d", out, 400, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0)
    return out


def write(name, content):
    content = bytes(content)
    assert len(content) < 10_000, name
    (FOLDER / name).write_bytes(content)


data = bytes(range(16))
good = bytes(header()) + data


def deflated_zeros(start, count):
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return packer.compress(start) + packer.compress(bytes(count)) + packer.flush()


write("bomb.nii.gz", deflated_zeros(bytes(header2((3, 1 << 22, 1 << 22, 1, 1, 1, 1, 1))), 8 << 20))
write("claims-terabytes.nii", header2((3, 1 << 20, 1 << 20, 4, 1, 1, 1, 1)) + data)
write("claims-gigabytes.nii", bytes(header((3, 32767, 32767, 2, 1, 1, 1, 1)).replace(
    struct.pack("<hh", 4, 16), struct.pack("<hh", 2, 8))) + data)
write("dims-overflow.nii", header2((3, 1 << 32, 1 << 32, 2, 1, 1, 1, 1)) + data)
write("negative-dim.nii", header((3, 2, -1, 2, 1, 1, 1, 1)) + data)
write("offset-into-header.nii", header(vox_offset=100.0) + data)
write("offset-at-end-of-world.nii", header(vox_offset=3e38) + data)
write("offset-not-a-number.nii", header(vox_offset=float("nan")) + data)
for name, size in [("extension-of-no-size.nii", 0), ("extension-backwards.nii", -(1 << 31))]:
    start = header(vox_offset=384.0)
    start[348] = 1
    write(name, start + struct.pack("<ii", size, 6) + bytes(24) + data)
packed = bytearray(gzip.compress(good, mtime=0))
packed[-6] ^= 1
write("wrong-check-sum.nii.gz", packed)
write("cut.nii.gz", gzip.compress(good, mtime=0)[:-9])
write("second-member.nii.gz", gzip.compress(good, mtime=0) + gzip.compress(bytes(1000), mtime=0))
write("singular.nii", header(srow=(1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 1, 0)) + data)
mixed = header()
struct.pack_into(">8h", mixed, 40, 3, 2, 2, 2, 1, 1, 1, 1)
write("two-orders.nii", mixed + data)
write("line-ends-converted.nii", header2((3, 2, 2, 2, 1, 1, 1, 1), magic=b"n+2\0\n\n\x1a\n") + data)
