"""Makes the files of this folder: a good header with one thing wrong in each. Run it inside the folder."""

import zlib
from pathlib import Path

GOOD = {"ObjectType": "Image", "NDims": "3", "BinaryData": "True", "BinaryDataByteOrderMSB": "False"}
GOOD |= {"DimSize": "4 3 2", "ElementType": "MET_SHORT"}
DATA = bytes(48)


def write(name, data=DATA, file="LOCAL", lines=(), **fields):
    lines = [f"{key} = {text}" for key, text in (GOOD | fields).items() if text is not None] + list(lines)
    Path(name).write_bytes(("\n".join(lines) + f"\nElementDataFile = {file}\n").encode() + data)


HUGE = str(2**63 - 1)
packed = zlib.compress(DATA)
bomb = zlib.compress(bytes(8 << 20))
compressed = {"CompressedData": "True", "CompressedDataSize": str(len(packed))}
write("axes-parallel.mha", TransformMatrix="1 0 0 1 0 0 0 0 1")
write("byte-order-missing.mha", BinaryDataByteOrderMSB=None)
write("center-of-rotation.mha", TransformMatrix="0 1 0 -1 0 0 0 0 1", CenterOfRotation="5 5 5")
write("channels-overflow.mha", ElementNumberOfChannels=str(2**62))
write("compressed-size-huge.mha", packed, **compressed | {"CompressedDataSize": HUGE})
write("data-file-absolute.mhd", b"", "/etc/passwd")
write("data-file-list.mhd", b"a.raw\nb.raw\n", "LIST")
write("data-file-pattern.mhd", b"", "slice%03d.raw 1 10 1")
write("data-file-windows.mhd", b"", "..\\secret.raw")
write("escape-sequence.mha", ElementType="\x1b]0;owned\x07")
write("field-in-other-case.mha", lines=["elementspacing = 9 9 9"])
write("field-twice.mha", lines=["DimSize = 3 4 2"])
write("header-size-in-itself.mha", HeaderSize="4")
write("header-size-huge.mhd", b"", "a.raw", HeaderSize=HUGE)
write("long-by-one.mha", DATA + b"\0")
write("matrix-scaled.mha", TransformMatrix="2 0 0 0 2 0 0 0 2")
write("ndims-huge.mha", NDims=HUGE)
write("offset-nan.mha", Offset="nan 0 0")
write("short-by-one.mha", DATA[:-1])
write("sizes-claim-much.mha", DimSize="2000 2000 1000")
write("sizes-overflow.mha", DimSize=" ".join(["4294967296"] * 3))
write("slope.mha", ElementToIntensityFunctionSlope="2")
write("spacing-zero.mha", ElementSpacing="1 0 1")
write("text-data.mha", b"0 " * 24, BinaryData="False")
write("zlib-bomb.mha", bomb, CompressedData="True", CompressedDataSize=str(len(bomb)))
write("zlib-check-sum.mha", packed[:-1] + bytes([packed[-1] ^ 1]), **compressed)
write("zlib-claims-much.mha", packed, **compressed | {"DimSize": "2000 2000 1000"})
