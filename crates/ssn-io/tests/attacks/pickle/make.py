"""Writes the hostile files of this folder and of ../torch_file; needs Python 3.8 or later and nothing else."""
import gzip
import io
import pathlib
import pickle
import struct
import zipfile

here = pathlib.Path(__file__).parent
torch = here.parent / "torch_file"


def text(s):
    return b"\x8c" + bytes([len(s)]) + s.encode()


def name(module, function):
    return text(module) + text(function) + b"\x93"


def array(shape, dtype, data, order="<"):
    """Opcodes of a NumPy array, with whatever shape and content."""
    dimensions = b"(" + b"".join(b"\x8a\x08" + struct.pack("<q", n) for n in shape) + b"t"
    kind = name("numpy", "dtype") + text(dtype) + b"\x89\x88\x87R(K\x03" + text(order) + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    start = name("numpy.core.multiarray", "_reconstruct") + name("numpy", "ndarray") + b"K\x00\x85C\x01b\x87R"
    return start + b"(K\x01" + dimensions + kind + b"\x89B" + struct.pack("<I", len(data)) + data + b"tb"


proto = b"\x80\x04"
files = {
    "os_system.pickle": b"cos\nsystem\n(Vecho harm\ntR.",
    "eval.pickle": proto + name("builtins", "eval") + text("1") + b"\x85R.",
    "getattr.pickle": proto + name("builtins", "getattr") + name("numpy", "ndarray") + text("tofile") + b"\x86R.",
    "reconstructor.pickle": proto + name("copyreg", "_reconstructor") + name("numpy", "ndarray") + b"NN\x87R.",
    "dotted_name.pickle": proto + name("numpy", "ndarray.tofile") + b".",
    "instance.pickle": b"(ios\nsystem\n.",
    "extension.pickle": proto + b"\x82\x01.",
    "outside_buffer.pickle": b"\x80\x05\x97.",
    "persistent.pickle": proto + text("data") + b"Q.",
    "cycle.pickle": proto + b"]\x94h\x00a.",
    "doubling.pickle": proto + b"]\x940" + b"".join(b"]\x94(h" + bytes([i]) + b"h" + bytes([i]) + b"e0" for i in range(60)) + b"h\x3c.",
    "deep.pickle.gz": gzip.compress(proto + b"]" * 100_000 + b"a" * 99_999 + b".", 9, mtime=0),
    "many_lists.pickle.gz": gzip.compress(proto + b"(" + b"]" * 6_000_000 + b"l.", 9, mtime=0),
    "wrong_crc.pickle.gz": (lambda z: z[:-6] + bytes([z[-6] ^ 1]) + z[-5:])(gzip.compress(proto + text("fine") + b".", 9, mtime=0)),
    "claims_an_exabyte.pickle": proto + b"\x8e" + struct.pack("<Q", 1 << 60) + b"few.",
    "frame_beyond_the_end.pickle": proto + b"\x95" + struct.pack("<Q", 1 << 63) + b"N.",
    "shape_overflows.pickle": proto + array([1 << 62, 1 << 62], "f8", b"\0" * 8) + b".",
    "shape_is_negative.pickle": proto + array([-1], "u1", b"\0") + b".",
    "content_too_short.pickle": proto + array([2, 3], "u2", b"\0" * 10) + b".",
    "bool_of_seven.pickle": proto + array([3], "b1", b"\0\1\7", "|") + b".",
    "array_of_objects.pickle": proto + name("numpy", "dtype") + text("O8") + b"\x89\x88\x87R.",
    "array_never_filled.pickle": proto + name("numpy.core.multiarray", "_reconstruct") + name("numpy", "ndarray") + b"K\x00\x85C\x01b\x87R.",
    "key_twice.pickle": proto + b"}(" + text("a") + b"K\x01" + text("a") + b"K\x02u.",
    "key_is_a_list.pickle": proto + b"}]K\x01s.",
    "integer_of_800_bits.pickle": proto + b"\x8a\x64" + b"\x01" * 100 + b".",
    "memo_gap.pickle": proto + b"Nr\xff\xff\xff\xff.",
    "two_pickles.pickle": proto + b"N." + proto + b"N.",
    "empty_stack.pickle": proto + b"R.",
    "protocol_9.pickle": b"\x80\x09N.",
}
for file, content in files.items():
    (here / file).write_bytes(content)


def storage(count=4, key="0", kind="FloatStorage"):
    return b"(" + text("storage") + b"ctorch\n" + kind.encode() + b"\n" + text(key) + text("cpu") + b"\x8a\x08" + struct.pack("<q", count) + b"tQ"


def tensor(shape, strides, offset=0, **more):
    def numbers(xs):
        return b"(" + b"".join(b"\x8a\x08" + struct.pack("<q", x) for x in xs) + b"t"

    head = b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage(**more) + b"\x8a\x08" + struct.pack("<q", offset)
    return head + numbers(shape) + numbers(strides) + b"\x89ccollections\nOrderedDict\n)RtR"


def archive(pickled, records=(("data/0", b"\0" * 16),), deflate=False):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED if deflate else zipfile.ZIP_STORED) as z:
        for record, content in (("data.pkl", b"\x80\x02" + pickled + b"."), ("byteorder", b"little"), *records):
            z.writestr(zipfile.ZipInfo("a/" + record), content, z.compression)
    return out.getvalue()


def overlapping():
    """The directory entry of data/1 points at the local header of data/0."""
    content = bytearray(archive(tensor([4], [1]), [("data/0", b"\0" * 16), ("data/1", b"\0" * 16)]))
    first, second = content.find(b"a/data/0"), content.rfind(b"a/data/1")
    content[second - 4 : second] = struct.pack("<I", first - 30)
    return bytes(content)


def duplicated():
    import warnings

    warnings.simplefilter("ignore")
    return archive(tensor([4], [1]), [("data/0", b"\0" * 16), ("data/0", b"\1" * 16)])


good = archive(tensor([4], [1]), [("data/0", b"abcdabcdabcdabcd")])
torch_files = {
    "os_system.pt": archive(b"cos\nsystem\n(X\x04\0\0\0harmtR"),
    "outside_the_storage.pt": archive(tensor([4], [1], offset=1)),
    "stride_overflows.pt": archive(tensor([3, 3], [1 << 62, 1 << 62])),
    "negative_stride.pt": archive(tensor([4], [-1], offset=3)),
    "expands_to_16_gigabytes.pt": archive(tensor([1 << 32], [0])),
    "bomb.pt": archive(b"](" + tensor([2_000_000], [1], count=2_000_000) * 3 + b"e", [("data/0", b"\0" * 8_000_000)], deflate=True),
    "storage_too_short.pt": archive(tensor([4], [1]), [("data/0", b"\0" * 12)]),
    "storage_missing.pt": archive(tensor([4], [1]), []),
    "storage_of_two_types.pt": archive(b"](" + tensor([4], [1]) + tensor([4], [1], kind="IntStorage") + b"e"),
    "unknown_storage.pt": archive(tensor([2], [1], count=2, kind="ComplexDoubleStorage"), [("data/0", b"\0" * 32)]),
    "path_outside.pt": archive(tensor([4], [1], key="../../x")),
    "same_name_twice.pt": duplicated(),
    "overlapping_records.pt": overlapping(),
    "wrong_crc.pt": good.replace(b"abcdabcd", b"abcdabce", 1),
    "two_pickles.pt": archive(tensor([4], [1])).replace(b"a/byteorder", b"b//data.pkl").replace(b"b//", b"bb/"),
    "joined_names_collide.pt": archive(b"}(" + text("x.y") + tensor([4], [1]) + text("x") + b"}" + text("y") + tensor([4], [1]) + b"su"),
    "no_zip.pt": pickle.dumps(0x1950A86A20F9469CFC6C, protocol=2),
}
torch.mkdir(exist_ok=True)
for file, content in torch_files.items():
    (torch / file).write_bytes(content)
