"""Makes the HDF5 files of this folder: `python3 make.py`, with h5py and numpy.

Every file has the layout of the LIDC data, in small: groups train, val and test with images, labels and uids. The
values follow from their index, so that the test can compute them.
"""

import h5py
import numpy as np

COUNTS = {"train": 3, "val": 2, "test": 1}
SIDE = 5
RATERS = 4
# The newest version of the format that HDF5 1.10 reads, which distributions still have.
VERSION = ("earliest", "v110")


def split(file, name, *, dtype="<f4", raters_last=True, variable=False, **storage):
    n = COUNTS[name]
    images = (np.arange(n * SIDE * SIDE) * 0.25 - 3).astype(dtype).reshape(n, SIDE, SIDE)
    shape = (n, SIDE, SIDE, RATERS) if raters_last else (n, RATERS, SIDE, SIDE)
    labels = (np.arange(n * SIDE * SIDE * RATERS) % 3 % 2).astype("u1").reshape(shape)
    uids = [f"1.3.6.{name}.{i}" for i in range(n)]
    group = file.create_group(name)
    group.create_dataset("images", data=images, **storage)
    group.create_dataset("labels", data=labels, **storage)
    kind = h5py.string_dtype() if variable else "S16"
    group.create_dataset("uids", data=np.array(uids, dtype=object if variable else "S16"), dtype=kind)


def lidc(path, libver=None, **options):
    with h5py.File(path, "w", libver=libver) as file:
        for name in COUNTS:
            split(file, name, **options)


lidc("contiguous.h5")
lidc("raters_first.h5", libver=VERSION, raters_last=False, dtype="<f8", variable=True)
lidc("big_endian.h5", dtype=">f4")
lidc("chunked.h5", libver=VERSION, chunks=True)
lidc("gzip.h5", libver=VERSION, chunks=True, compression="gzip", variable=True)
lidc("gzip_shuffle.h5", libver=VERSION, dtype="<f8", chunks=True, compression="gzip", shuffle=True, fletcher32=True)


def count(*shape):
    return (np.arange(np.prod(shape)) % 256).astype("u1").reshape(shape)


with h5py.File("user_block.h5", "w", userblock_size=512, libver=VERSION) as file:
    file["a"] = count(3)

with h5py.File("lzf.h5", "w", libver=VERSION) as file:
    file.create_dataset("a", data=np.zeros(1000, "u1"), compression="lzf")

with h5py.File("compound.h5", "w") as file:
    file["records"] = np.zeros(2, dtype=[("a", "<i4"), ("b", "<f4")])

with h5py.File("huge_claim.h5", "w", libver=VERSION) as file:
    file.create_dataset("images", shape=(1 << 15, 128, 128), dtype="<f4", chunks=(1, 128, 128), compression="gzip")

with h5py.File("loop.h5", "w") as file:
    group = file.create_group("a")
    group["again"] = group

with h5py.File("soft_link.h5", "w") as file:
    file["a"] = np.arange(3, dtype="u1")
    file["b"] = h5py.SoftLink("/a")

with h5py.File("external_link.h5", "w") as file:
    file["b"] = h5py.ExternalLink("other.h5", "/a")

with h5py.File("external_data.h5", "w") as file:
    file.create_dataset("a", shape=(4,), dtype="u1", external=[("other.raw", 0, 4)])

with h5py.File("dangling_link.h5", "w") as file:
    file["b"] = h5py.SoftLink("/nothing")

with h5py.File("booleans.h5", "w") as file:
    file["mask"] = np.array([True, False])

with h5py.File("odd_float.h5", "w", libver=VERSION) as file:
    odd = h5py.h5t.IEEE_F32LE.copy()
    odd.set_fields(31, 20, 11, 0, 20)
    odd.set_ebias(1023)
    space = h5py.h5s.create_simple((2,))
    h5py.h5d.create(file.id, b"odd", odd, space)

with h5py.File("narrow_integer.h5", "w", libver=VERSION) as file:
    odd = h5py.h5t.STD_U16LE.copy()
    odd.set_precision(12)
    odd.set_offset(4)
    h5py.h5d.create(file.id, b"odd", odd, h5py.h5s.create_simple((2,)))
