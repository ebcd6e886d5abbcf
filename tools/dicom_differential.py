"""Compares the reader of DICOM series of ssn-io with SimpleITK's ImageSeriesReader.

    pip install SimpleITK pydicom numpy pillow
    cargo build -p ssn-io --example itk_exchange
    python tools/dicom_differential.py target/debug/examples/itk_exchange

Series are made with pydicom and, where compressed, SimpleITK: types, transfer syntaxes, unused bits, rescaling, slices in
any order of names, and planes that lie obliquely. Voxels, spacing, origin and direction must be the same in both
readers. The exit status is 1 if one differs or is refused.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pydicom
import SimpleITK as sitk
from pydicom.dataset import FileDataset, FileMetaDataset
from pydicom.encaps import encapsulate
from pydicom.uid import (
    CTImageStorage,
    ExplicitVRBigEndian,
    ExplicitVRLittleEndian,
    ImplicitVRLittleEndian,
    JPEGBaseline8Bit,
    RLELossless,
    generate_uid,
)

# Positions and orientations are text of 16 characters.
TOLERANCE = 1e-6


def rotation(seed):
    turned, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))
    turned[:, 2] = np.cross(turned[:, 0], turned[:, 1])
    return turned


def volume(kind, shape, bits=None, seed=0):
    limits = np.iinfo(kind)
    low, high = (limits.min, limits.max) if bits is None else (0, 2**bits - 1)
    return np.random.default_rng(seed).integers(low, high, size=shape, dtype=kind, endpoint=True)


def number(value):
    return pydicom.valuerep.DSfloat(float(value), auto_format=True)


def write_series(folder, values, *, syntax=ExplicitVRLittleEndian, turned=np.eye(3), spacing=(0.7, 0.6, 2.5), names=None,
                 origin=(-100.5, 20.25, -310.0), rescale=lambda slice: {}, bits=None, ending=".dcm", between=None):
    """One file for each slice of `values` [d, h, w]; `turned` has the axes i, j, k in its columns."""
    folder.mkdir()
    uid = generate_uid()
    for slice, plane in enumerate(values):
        meta = FileMetaDataset()
        meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID = CTImageStorage, generate_uid()
        meta.TransferSyntaxUID = ExplicitVRLittleEndian if syntax == RLELossless else syntax
        data = FileDataset(None, {}, file_meta=meta, preamble=b"\0" * 128)
        data.SOPClassUID, data.SOPInstanceUID = meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID
        data.Modality, data.SeriesDescription, data.SeriesNumber = "CT", "made for a comparison", 3
        data.StudyInstanceUID, data.SeriesInstanceUID, data.InstanceNumber = generate_uid(), uid, slice + 1
        data.ImagePositionPatient = [number(x) for x in np.array(origin) + slice * spacing[2] * turned[:, 2]]
        data.ImageOrientationPatient = [number(x) for x in turned[:, :2].T.ravel()]
        data.PixelSpacing, data.SliceThickness = [number(spacing[1]), number(spacing[0])], number(7)
        data.Rows, data.Columns, data.SamplesPerPixel = *plane.shape, 1
        data.BitsAllocated = 8 * plane.dtype.itemsize
        data.BitsStored = bits or data.BitsAllocated
        data.HighBit, data.PixelRepresentation = data.BitsStored - 1, int(plane.dtype.kind == "i")
        data.PhotometricInterpretation = "MONOCHROME2"
        # A sequence before the pixel data, of a length that is not given.
        data.ReferencedImageSequence = [pydicom.Dataset()]
        data.ReferencedImageSequence[0].ReferencedSOPInstanceUID = generate_uid()
        data["ReferencedImageSequence"].is_undefined_length = True
        for name, value in rescale(slice).items():
            setattr(data, name, number(value))
        if between:
            data.SpacingBetweenSlices = number(between)
        order = ">" if syntax == ExplicitVRBigEndian else "<"
        if syntax == JPEGBaseline8Bit:
            data.PixelData = encapsulate([jpeg(plane)])
        else:
            data.PixelData = plane.astype(plane.dtype.newbyteorder(order)).tobytes()
        data["PixelData"].VR = "OB" if syntax == JPEGBaseline8Bit else "OW"
        if syntax == RLELossless:
            data.compress(RLELossless)
        name = names[slice] if names else f"IM{slice:04}"
        options = dict(enforce_file_format=True)
        if syntax == ExplicitVRBigEndian:
            meta.FileMetaInformationGroupLength = 0
            options = dict(force_encoding=True, little_endian=False, implicit_vr=False)
        pydicom.dcmwrite(folder / f"{name}{ending}", data, **options)


def jpeg(plane):
    import io

    from PIL import Image

    out = io.BytesIO()
    Image.fromarray(plane).save(out, "JPEG", quality=90)
    return out.getvalue()


def lossless(folder, values):
    """Lossless JPEG, written by SimpleITK."""
    folder.mkdir()
    writer = sitk.ImageFileWriter()
    writer.KeepOriginalImageUIDOn()
    for slice, plane in enumerate(values):
        image = sitk.GetImageFromArray(plane)
        image.SetSpacing((0.6, 0.7))
        tags = {"0008|0060": "CT", "0020|000e": "1.2.3.4", "0020|0032": f"0\\0\\{slice * 2.5}", "0008|0016": CTImageStorage,
                "0020|0037": "1\\0\\0\\0\\1\\0", "0028|0030": "0.7\\0.6", "0008|0018": f"1.2.3.4.{slice + 1}"}
        for tag, value in tags.items():
            image.SetMetaData(tag, value)
        writer.UseCompressionOn()
        writer.SetCompressor("JPEG")
        writer.SetFileName(str(folder / f"{slice}.dcm"))
        writer.Execute(image)


def make(folder):
    shape = (9, 8, 10)
    series = {f"type-{kind}": dict(values=volume(kind, shape)) for kind in ("u1", "i1", "u2", "i2", "u4", "i4")}
    many = volume("u2", (200, 33, 47), bits=12)
    shuffled = np.random.default_rng(3).permutation(200)
    fixed = lambda slope, intercept: lambda slice: {"RescaleSlope": slope, "RescaleIntercept": intercept}
    series |= {
        "slices-200": dict(values=many, rescale=fixed(1, -1024), bits=12),
        "slices-200-oblique": dict(values=many, rescale=fixed(1, -1024), bits=12, turned=rotation(1)),
        "slices-200-reversed": dict(values=many, rescale=fixed(1, -1024), names=[f"I{199 - i:03}" for i in range(200)]),
        "slices-200-shuffled": dict(values=many, names=[str(i) for i in shuffled], ending="", turned=rotation(2)),
        "sagittal": dict(values=volume("i2", shape), turned=np.array([[0, 0, -1], [1, 0, 0], [0, -1, 0.0]])),
        "implicit": dict(values=volume("i2", shape), syntax=ImplicitVRLittleEndian),
        "big-endian": dict(values=volume("i2", shape), syntax=ExplicitVRBigEndian),
        "fractions": dict(values=volume("u2", shape), rescale=fixed(0.1234, -3.5)),
        "rescaled-differently": dict(
            values=volume("u2", shape),
            rescale=lambda slice: {"RescaleSlope": 0.25 + slice, "RescaleIntercept": slice},
        ),
        "unused-bits": dict(values=volume("u2", shape), bits=12),
        "unused-bits-signed": dict(values=volume("i2", shape), bits=12),
        "rle-u1": dict(values=volume("u1", shape) // 64, syntax=RLELossless),
        "rle-i2": dict(values=volume("i2", shape) // 4096, syntax=RLELossless),
        "rle-noise": dict(values=volume("u2", shape), syntax=RLELossless),
        "rle-flat": dict(values=np.full((2, 300, 300), 7, "u2"), syntax=RLELossless),
        "jpeg": dict(values=volume("u1", (4, 16, 24)) // 8 * 8, syntax=JPEGBaseline8Bit),
        "ima": dict(values=volume("u2", shape), ending=".IMA"),
        "one-slice": dict(values=volume("u2", (1, 8, 10)), between=3),
        "odd-length": dict(values=volume("u1", (3, 5, 7))),
    }
    for name, options in series.items():
        write_series(folder / name, **options)
    for kind in ("u1", "u2", "i2"):
        lossless(folder / f"lossless-{kind}", volume(kind, (5, 12, 10)))
    return sorted(path for path in folder.iterdir())


def read_itk(folder):
    names = sitk.ImageSeriesReader.GetGDCMSeriesFileNames(str(folder))
    reader = sitk.ImageSeriesReader()
    reader.SetFileNames(names)
    reader.SetOutputPixelType(sitk.sitkFloat64)
    return reader.Execute()


def difference(theirs, ours, tolerance):
    if theirs.GetSize() != ours.GetSize():
        return f"sizes {theirs.GetSize()} and {ours.GetSize()}"
    a, b = (sitk.GetArrayFromImage(image).astype("f8") for image in (theirs, ours))
    if (worst := np.abs(a - b).max()) > tolerance:
        return f"voxels by {worst}"
    for name in ("GetSpacing", "GetOrigin", "GetDirection"):
        x, y = (np.array(getattr(image, name)()) for image in (theirs, ours))
        if not np.allclose(x, y, rtol=TOLERANCE, atol=TOLERANCE):
            return f"{name[3:].lower()} {x.tolist()} and {y.tolist()}"
    return None


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("program", type=Path, help="the built example itk_exchange")
    arguments = arguments.parse_args()
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        paths = make(Path(folder))
        for path in paths:
            start = time.perf_counter()
            answer = subprocess.run([arguments.program], input=f"{path}\n", capture_output=True, text=True).stdout.strip()
            ours_s, start = time.perf_counter() - start, time.perf_counter()
            theirs = read_itk(path)
            theirs_s = time.perf_counter() - start
            # Slopes of their own make single precision; JPEG is decoded with other rounding.
            tolerance = {"rescaled-differently": 0.1, "jpeg": 1}.get(path.name, 0)
            if answer.startswith("ok"):
                answer = difference(theirs, sitk.ReadImage(f"{path}.raw.nrrd"), tolerance) or "same"
            failures += answer != "same"
            print(f"{path.name:<24} {answer}  ({ours_s:.2f} s, SimpleITK {theirs_s:.2f} s)")
    print(f"{len(paths)} series, {failures} differ")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
