"""Makes the files of this folder: a good header with one thing wrong in each. Run it inside the folder."""

import gzip
from pathlib import Path

GOOD = {"type": "short", "dimension": "3", "sizes": "4 3 2", "endian": "little", "encoding": "raw"}
VECTORS = {"space": "LPS", "space directions": "(1,0,0) (0,1,0) (0,0,1)", "space origin": "(0,0,0)"}
DATA = bytes(48)


def write(name, data=DATA, lines=(), **fields):
    fields = GOOD | {key.replace("_", " "): text for key, text in fields.items()}
    lines = [f"{key}: {text}" for key, text in fields.items() if text is not None] + list(lines)
    Path(name).write_bytes(("NRRD0004\n" + "\n".join(lines) + "\n\n").encode() + data)


HUGE = str(2**63 - 1)
packed = gzip.compress(DATA, mtime=0)
write("axes-parallel.nrrd", **VECTORS | {"space directions": "(1,0,0) (1,0,0) (0,0,1)"})
write("axis-without-length.nrrd", **VECTORS | {"space directions": "(1,0,0) (0,0,0) (0,0,1)"})
write("byte-skip-huge.nrrd", byte_skip=HUGE)
write("byte-skip-huge-gzip.nrrd", packed, encoding="gzip", byte_skip=HUGE)
write("data-file-list.nhdr", b"a.raw\nb.raw\n", ["data file: LIST"])
write("data-file-pattern.nhdr", b"", data_file="slice%03d.raw 1 10 1")
write("data-file-up.nhdr", b"", data_file="../../etc/passwd")
write("dimension-huge.nrrd", dimension=HUGE)
write("endian-missing.nrrd", endian=None)
write("escape-sequence.nrrd", type="\x1b]0;owned\x07")
write("field-twice.nrrd", lines=["sizes: 3 4 2"])
write("gzip-bomb.nrrd", gzip.compress(bytes(8 << 20), mtime=0), encoding="gzip")
write("gzip-check-sum.nrrd", packed[:-8] + bytes([packed[-8] ^ 1]) + packed[-7:], encoding="gzip")
write("gzip-claims-much.nrrd", packed, encoding="gzip", sizes="2000 2000 1000")
write("line-skip-huge.nrrd", line_skip=str(2**64 - 1))
write("long-by-one.nrrd", DATA + b"\0")
write("origin-nan.nrrd", **VECTORS | {"space origin": "(nan,0,0)"})
write("short-by-one.nrrd", DATA[:-1])
write("sizes-claim-much.nrrd", sizes="2000 2000 1000")
write("sizes-negative.nrrd", sizes="4 -3 -2")
write("sizes-overflow.nrrd", sizes=" ".join(["4294967296"] * 3))
write("sizes-zero.nrrd", b"", sizes="4 0 2")
