"""Makes the files of this folder: a good slice with one thing wrong in each. Run it inside the folder."""

import struct
from pathlib import Path

EXPLICIT = "1.2.840.10008.1.2.1"
RLE = "1.2.840.10008.1.2.5"
JPEG = "1.2.840.10008.1.2.4.50"
PIXELS = (0x7FE0, 0x0010)
UNDEFINED = 0xFFFFFFFF


def element(tag, kind, value, length=None):
    value += b"\0" * (len(value) % 2) if kind in ("UI", "OW", "OB") else b" " * (len(value) % 2)
    length = len(value) if length is None else length
    wide = kind in ("OB", "OW", "SQ", "UN")
    head = struct.pack("<HH2sHI", *tag, kind.encode(), 0, length) if wide else struct.pack("<HH2sH", *tag, kind.encode(), length)
    return head + value


def item(value, length=None):
    return struct.pack("<HHI", 0xFFFE, 0xE000, len(value) if length is None else length) + value


END_OF_ITEM = struct.pack("<HHI", 0xFFFE, 0xE00D, 0)
END_OF_SEQUENCE = struct.pack("<HHI", 0xFFFE, 0xE0DD, 0)


def good():
    short = lambda number: ("US", struct.pack("<H", number))
    return {
        (0x0008, 0x0060): ("CS", b"CT"),
        (0x0020, 0x000E): ("UI", b"1.2.3"),
        (0x0020, 0x0032): ("DS", b"0\\0\\0"),
        (0x0020, 0x0037): ("DS", b"1\\0\\0\\0\\1\\0"),
        (0x0028, 0x0002): short(1),
        (0x0028, 0x0004): ("CS", b"MONOCHROME2"),
        (0x0028, 0x0010): short(2),
        (0x0028, 0x0011): short(3),
        (0x0028, 0x0030): ("DS", b"1\\1"),
        (0x0028, 0x0100): short(16),
        (0x0028, 0x0101): short(16),
        (0x0028, 0x0102): short(15),
        (0x0028, 0x0103): short(0),
        PIXELS: ("OW", bytes(12)),
    }


def write(name, changes=(), syntax=EXPLICIT, meta_length=None, raw=None):
    """`raw` maps tags to the bytes of whole elements."""
    elements = good() | dict(changes)
    whole = {tag: element(tag, *value) for tag, value in elements.items()} | (raw or {})
    meta = element((0x0002, 0x0010), "UI", syntax.encode())
    length = len(meta) if meta_length is None else meta_length
    body = b"".join(whole[tag] for tag in sorted(whole))
    start = bytes(128) + b"DICM" + element((0x0002, 0x0000), "UL", struct.pack("<I", length))
    Path(name).write_bytes(start + meta + body)


def encapsulated(*fragments):
    items = item(b"") + b"".join(item(fragment) for fragment in fragments)
    return {PIXELS: element(PIXELS, "OB", items + END_OF_SEQUENCE, UNDEFINED)}


def short(number):
    return ("US", struct.pack("<H", number))


ROWS, COLUMNS = (0x0028, 0x0010), (0x0028, 0x0011)
BYTES = {(0x0028, 0x0100): short(8), (0x0028, 0x0101): short(8), (0x0028, 0x0102): short(7)}
HUGE = {ROWS: short(65535), COLUMNS: short(65535)}
SEQUENCE = (0x0008, 0x1140)


def run_lengths(*numbers):
    return struct.pack("<16I", *numbers, *[0] * (16 - len(numbers)))


write("columns-zero.dcm", {COLUMNS: short(0)})
write("cut-in-sequence.dcm", raw={SEQUENCE: element(SEQUENCE, "SQ", item(b"", UNDEFINED), UNDEFINED), PIXELS: b""})
deep = b"".join(element(SEQUENCE, "SQ", item(b"", UNDEFINED), UNDEFINED) for _ in range(500))
write("deep-sequences.dcm", raw={SEQUENCE: deep + (END_OF_ITEM + END_OF_SEQUENCE) * 500, PIXELS: b""})
write("element-claims-much.dcm", raw={(0x0009, 0x0010): element((0x0009, 0x0010), "OB", b"", 0xFFFFFFF0)})
write("escape-sequence.dcm", {(0x0028, 0x0004): ("CS", b"\x1b]0;owned\x07")})
write("fragment-claims-much.dcm", BYTES, RLE, raw={PIXELS: element(PIXELS, "OB", item(b"") + item(b"", 0xFFFFFFF0), UNDEFINED)})
frame = struct.pack(">BHHB", 8, 65535, 65535, 1) + b"\x01\x11\0"
jpeg = b"\xff\xd8\xff\xc0" + struct.pack(">H", len(frame) + 2) + frame + b"\xff\xd9"
write("jpeg-huge-claim.dcm", BYTES | HUGE, JPEG, raw=encapsulated(jpeg))
picture = Path("../raster/good.jpg").read_bytes()
write("jpeg-other-size.dcm", BYTES, JPEG, raw=encapsulated(picture + bytes(len(picture) % 2)))
write("many-fragments.dcm", BYTES, RLE, raw=encapsulated(*[b""] * 4000))
write("meta-length-huge.dcm", meta_length=0xFFFFFFF0)
write("meta-length-into-data.dcm", meta_length=40)
write("pixel-data-claims-much.dcm", raw={PIXELS: element(PIXELS, "OW", bytes(12), 0xFFFFFFF0)})
write("pixel-data-twice.dcm", raw={PIXELS: element(PIXELS, "OW", bytes(12)) * 2})
write("position-infinite.dcm", {(0x0020, 0x0032): ("DS", b"1e999\\0\\0")})
write("position-too-far.dcm", {(0x0020, 0x0032): ("DS", b"1e300\\0\\0")})
write("rows-claim-much.dcm", HUGE)
write("run-lengths-claim-much.dcm", BYTES | HUGE, RLE, raw=encapsulated(run_lengths(1, 64) + b"\x81\0"))
write("run-lengths-outside.dcm", BYTES, RLE, raw=encapsulated(run_lengths(1, 0xFFFFFFF0) + b"\xfb\0"))
write("run-lengths-too-long.dcm", BYTES, RLE, raw=encapsulated(run_lengths(1, 64) + b"\x81\0"))
write("spacing-nan.dcm", {(0x0028, 0x0030): ("DS", b"nan\\1")})
write("spacing-negative.dcm", {(0x0028, 0x0030): ("DS", b"-1\\1")})
write("syntax-missing.dcm", syntax="")
