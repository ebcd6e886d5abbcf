//! NIfTI, NRRD and MetaImage.

use ssn_io::formats::{metaimage, nifti, nrrd, seg_nrrd};
use ssn_io::{Image, Segment, VoxelType};

use super::{
    ANY, Case, MEMORY, MUCH, READ, SIZE, case, gzip, longer_gzip, longer_zlib, most, most_of, zeros,
};

/// Bytes for the text of a header.
const HEADER: usize = 1000;

pub fn cases() -> Vec<Case> {
    let plain = zeros(VoxelType::U8, SIZE - 4096, 1);
    let mut cases = vec![case("plain.nii", nifti::encode(&plain, nifti::Version::One).unwrap(), READ)];
    for kind in [VoxelType::U8, VoxelType::I16, VoxelType::F32, VoxelType::F64] {
        cases.push(case(format!("most-{kind:?}.nii.gz"), nifti_gz(&zeros(kind, most_of(kind), 1)), READ));
    }
    cases.push(case("much.nii.gz", nifti_gz(&zeros(VoxelType::U8, MUCH, 1)), MEMORY));
    for (kind, channels) in [(VoxelType::I8, 1), (VoxelType::F64, 1), (VoxelType::F64, 3)] {
        let image = zeros(kind, most_of(kind), channels);
        cases.push(case(format!("most-{kind:?}-{channels}.nrrd"), nrrd_gzip(&image), READ));
        cases.push(case(format!("most-{kind:?}-{channels}.mha"), metaimage_zlib(&image), READ));
    }
    for (name, bytes, outcome) in [("most", most_of(VoxelType::U8), READ), ("much", MUCH, MEMORY)] {
        cases.push(case(format!("{name}.seg.nrrd"), seg_nrrd_gzip(&zeros(VoxelType::U8, bytes, 1)), outcome));
    }
    let voxel = "type: uchar\ndimension: 2\nsizes: 1 1\nencoding: raw";
    for (name, line) in [("keys", "a:=\n"), ("names", "Segment0_Name:=a\n")] {
        let lines = line.repeat((SIZE - HEADER) / line.len());
        let bytes = format!("NRRD0004\n{voxel}\n{lines}\n\0").into_bytes();
        cases.push(case(format!("many-{name}.seg.nrrd"), bytes, ANY));
    }
    let mut lines = String::new();
    for number in 0.. {
        lines += &format!("Segment{number}_a:=\n");
        if lines.len() > SIZE - HEADER {
            break;
        }
    }
    let bytes = format!("NRRD0004\n{voxel}\n{lines}\n\0").into_bytes();
    cases.push(case("many-segments.seg.nrrd", bytes, ANY));
    let image = zeros(VoxelType::I8, MUCH, 1);
    cases.push(case("much.nrrd", nrrd_gzip(&image), MEMORY));
    cases.push(case("much.mha", metaimage_zlib(&image), MEMORY));
    cases.push(case("most-skipped.nrrd", skipped(most(1)), READ));
    cases.push(case("much-skipped.nrrd", skipped(3 * MUCH), MEMORY));
    let lines = format!(
        "NRRD0004\ntype: uchar\ndimension: 2\nsizes: 1 1\nencoding: raw\nunits: {}",
        "\"".repeat(SIZE - 200)
    );
    cases.push(case("units.nrrd", lines.into_bytes(), ANY));
    cases
}

fn nifti_gz(image: &Image) -> Vec<u8> {
    let file = nifti::encode(image, nifti::Version::for_image(image)).unwrap();
    longer_gzip(&gzip(&file), SIZE)
}

fn nrrd_gzip(image: &Image) -> Vec<u8> {
    let (header, data) = split(nrrd::encode_gzip(image).unwrap(), b"\n\n");
    [header, longer_gzip(&data, SIZE - HEADER)].concat()
}

fn seg_nrrd_gzip(image: &Image) -> Vec<u8> {
    let segment = Segment { name: "tumor".to_owned(), label: 1 };
    let (header, data) = split(seg_nrrd::encode(image, &[segment]).unwrap(), b"\n\n");
    [header, longer_gzip(&data, SIZE - HEADER)].concat()
}

/// One voxel behind a long part that is expanded and left out.
fn skipped(count: usize) -> Vec<u8> {
    let header =
        format!("NRRD0004\ntype: uchar\ndimension: 2\nsizes: 1 1\nencoding: gzip\nbyte skip: {count}\n\n");
    [header.into_bytes(), longer_gzip(&gzip(&vec![0; count + 1]), SIZE - HEADER)].concat()
}

fn metaimage_zlib(image: &Image) -> Vec<u8> {
    let (header, data) = split(metaimage::encode_zlib(image).unwrap(), b"LOCAL\n");
    let longer = longer_zlib(&data, SIZE - HEADER);
    let header = String::from_utf8(header).unwrap();
    let size = |bytes: &[u8]| format!("CompressedDataSize = {}\n", bytes.len());
    [header.replace(&size(&data), &size(&longer)).into_bytes(), longer].concat()
}

/// The header with its last line, and what follows.
fn split(mut file: Vec<u8>, end: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let at = file.windows(end.len()).position(|window| window == end).unwrap() + end.len();
    let data = file.split_off(at);
    (file, data)
}
