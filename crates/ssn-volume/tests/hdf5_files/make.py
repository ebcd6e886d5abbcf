"""Makes the HDF5 files of this folder: `python3 make.py`, with h5py and numpy.

Every file has the layout of the LIDC data, in small: groups train, val and test with images, labels and uids. The
values follow from their index, so that the test can compute them.
"""

import h5py
import numpy as np

COUNTS = {"train": 3, "val": 2, "test": 1}
SIDE = 5
RATERS = 4


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
lidc("raters_first.h5", libver="latest", raters_last=False, dtype="<f8", variable=True)
lidc("big_endian.h5", dtype=">f4")
lidc("chunked.h5", libver="latest", chunks=True)
lidc("gzip.h5", libver="latest", chunks=True, compression="gzip", variable=True)
lidc("gzip_shuffle.h5", libver="latest", dtype="<f8", chunks=True, compression="gzip", shuffle=True, fletcher32=True)



def count(*shape):
    return (np.arange(np.prod(shape)) % 256).astype("u1").reshape(shape)


def indexes(path, libver):
    """Datasets in chunks with every index, and others that take a way of their own through a reader."""
    sides = {"data": count(6, 7), "chunks": (2, 3)}
    gzip = {"compression": "gzip", "shuffle": True}
    with h5py.File(path, "w", libver=libver) as file:
        file.create_dataset("single", data=count(6, 7), chunks=(6, 7))
        file.create_dataset("single_gzip", data=count(6, 7), chunks=(6, 7), **gzip)
        file.create_dataset("fixed", **sides)
        file.create_dataset("fixed_gzip", **sides, **gzip)
        file.create_dataset("fixed_larger", **sides, maxshape=(60, 70))
        file.create_dataset("pages", data=count(1100), chunks=(1,))
        file.create_dataset("growing", **sides, maxshape=(None, 7))
        file.create_dataset("growing_second", **sides, maxshape=(6, None), fletcher32=True, **gzip)
        file.create_dataset("growing_long", data=count(700), chunks=(1,), maxshape=(None,))
        file.create_dataset("tree", **sides, maxshape=(None, None))
        file.create_dataset("tree_deep", data=count(30, 30), chunks=(2, 2), maxshape=(None, None))
        file.create_dataset("tree_deep_gzip", data=count(30, 30), chunks=(3, 2), maxshape=(None, None), **gzip)
        file.create_dataset("shrunk", **sides, maxshape=(None, None)).resize((5, 3))
        file.create_dataset("sparse", shape=(6, 7), dtype="<i2", chunks=(1, 1), fillvalue=-7)[2, 6] = 20
        file.create_dataset("never", shape=(6, 7), dtype=">i2", fillvalue=-7)
        space, kind = h5py.h5s.create_simple((6, 7)), h5py.h5t.STD_U8LE
        implicit, compact = (h5py.h5p.create(h5py.h5p.DATASET_CREATE) for _ in range(2))
        implicit.set_chunk((2, 3))
        implicit.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        compact.set_layout(h5py.h5d.COMPACT)
        for name, how in ((b"implicit", implicit), (b"compact", compact)):
            h5py.h5d.create(file.id, name, kind, space, how).write(h5py.h5s.ALL, h5py.h5s.ALL, count(6, 7))


indexes("indexes.h5", "latest")
indexes("older_indexes.h5", "earliest")


def groups(path, libver, track_order=False):
    with h5py.File(path, "w", libver=libver) as file:
        small = file.create_group("small", track_order=track_order)
        large = file.create_group("large", track_order=track_order)
        small["0"] = count(3)
        for i in range(1, 3):
            small[f"{i}"] = small["0"]
        for i in range(300):
            large[f"{i:03}"] = small["0"]


groups("groups.h5", "latest")
groups("ordered_groups.h5", "latest", track_order=True)
groups("older_groups.h5", "earliest")

with h5py.File("user_block.h5", "w", userblock_size=512, libver="latest") as file:
    file["a"] = count(3)

with h5py.File("lzf.h5", "w", libver="latest") as file:
    file.create_dataset("a", data=np.zeros(1000, "u1"), compression="lzf")

with h5py.File("compound.h5", "w") as file:
    file["records"] = np.zeros(2, dtype=[("a", "<i4"), ("b", "<f4")])

with h5py.File("huge_claim.h5", "w", libver="latest") as file:
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

with h5py.File("odd_float.h5", "w", libver="latest") as file:
    odd = h5py.h5t.IEEE_F32LE.copy()
    odd.set_fields(31, 20, 11, 0, 20)
    odd.set_ebias(1023)
    space = h5py.h5s.create_simple((2,))
    h5py.h5d.create(file.id, b"odd", odd, space)

with h5py.File("narrow_integer.h5", "w", libver="latest") as file:
    odd = h5py.h5t.STD_U16LE.copy()
    odd.set_precision(12)
    odd.set_offset(4)
    h5py.h5d.create(file.id, b"odd", odd, h5py.h5s.create_simple((2,)))
