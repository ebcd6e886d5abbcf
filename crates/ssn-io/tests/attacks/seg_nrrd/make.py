"""Makes the files of this folder: a good segmentation with one thing wrong in each. Run it inside the folder."""

import gzip
from pathlib import Path

GOOD = {"type": "unsigned char", "dimension": "3", "sizes": "4 3 2", "encoding": "raw"}
SEGMENTS = {"Segment0_Name": "tumor", "Segment0_LabelValue": "1", "Segment1_Name": "edema", "Segment1_LabelValue": "2"}
DATA = bytes(range(3)) * 8


def write(name, data=DATA, keys=(), lines=(), **fields):
    fields = [f"{key}: {text}" for key, text in (GOOD | fields).items()]
    keys = [f"{key}:={text}" for key, text in (SEGMENTS | dict(keys)).items()]
    Path(name).write_bytes(("NRRD0004\n" + "\n".join([*fields, *keys, *lines]) + "\n\n").encode() + data)


write("escape-sequence.seg.nrrd", keys={"Segment1_Name": "\x1b]0;owned\x07", "Segment1_LabelValue": "\x1b[2J"})
write("gzip-bomb.seg.nrrd", gzip.compress(bytes(8 << 20), mtime=0), encoding="gzip")
write("key-twice.seg.nrrd", lines=["Segment0_LabelValue:=2"])
write("label-huge.seg.nrrd", keys={"Segment1_LabelValue": "18446744073709551617"})
write("label-is-background.seg.nrrd", keys={"Segment1_LabelValue": "0"})
write("label-negative.seg.nrrd", keys={"Segment1_LabelValue": "-1"})
write("label-twice.seg.nrrd", keys={"Segment1_LabelValue": "1"})
write("layers-claim-much.seg.nrrd", dimension="4", sizes="2000000000 1 1 1", kinds="list domain domain domain")
write("layers-overlap.seg.nrrd", DATA * 2, dimension="4", sizes="2 4 3 2", kinds="list domain domain domain", keys={"Segment1_Layer": "1"})
write("short-by-one.seg.nrrd", DATA[:-1])
write("sizes-claim-much.seg.nrrd", sizes="2000 2000 2000")
