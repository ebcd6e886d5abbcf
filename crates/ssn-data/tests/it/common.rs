//! Small files of every kind, for datasets in temporary folders.

use std::fs;
use std::path::{Path, PathBuf};

use ssn_io::{Geometry, Image, Limits, Segment, Voxels, write, write_labels};
use ssn_testing::dicom::Segmentation;

/// A folder that goes away with the test.
pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// A path inside, with the folders that lead to it.
    pub fn file(&self, name: &str) -> PathBuf {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    pub fn text(&self, name: &str, content: &str) {
        fs::write(self.file(name), content).unwrap();
    }

    /// An image `[c, d, h, w]` whose values are made from a number.
    pub fn image(&self, name: &str, shape: [usize; 4], number: usize) {
        let n: usize = shape.iter().product();
        let values = (0..n).map(|i| ((i * 7 + number * 13) % 97) as u8).collect();
        self.volume(name, Voxels::U8(values), shape, Geometry::default());
    }

    /// A label map `[d, h, w]`: `first` voxels of `value`, the rest 0.
    pub fn labels(&self, name: &str, [d, h, w]: [usize; 3], first: usize, value: u8) {
        let values = (0..d * h * w).map(|i| if i < first { value } else { 0 }).collect();
        self.volume(name, Voxels::U8(values), [1, d, h, w], Geometry::default());
    }

    pub fn volume(&self, name: &str, voxels: Voxels, shape: [usize; 4], geometry: Geometry) {
        let image = Image::new(voxels, shape, geometry, &Limits::default()).unwrap();
        write(&self.file(name), &image).unwrap();
    }

    /// A `.seg.nrrd` file with the labels `[1, h, w]` and the names of its segments.
    pub fn segments(&self, name: &str, labels: &[u8], [h, w]: [usize; 2], segments: &[(&str, u8)]) {
        let segments: Vec<Segment> =
            segments.iter().map(|&(name, label)| Segment { name: name.to_owned(), label }).collect();
        let voxels = Voxels::U8(labels.to_vec());
        let image = Image::new(voxels, [1, 1, h, w], Geometry::default(), &Limits::default()).unwrap();
        write_labels(&self.file(name), &image, &segments).unwrap();
    }

    /// A DICOM file: the slice at height `z` of a series in a folder, 3 × 4 values of 16 bits made from the height.
    pub fn slice(&self, folder: &str, series: &str, z: u16) {
        let text = |tag: [u16; 2], kind: &str, text: &str| {
            let text = format!("{text}{}", &" "[..text.len() % 2]);
            let head = [
                &tag.map(u16::to_le_bytes).concat()[..],
                kind.as_bytes(),
                &(text.len() as u16).to_le_bytes(),
            ];
            [&head.concat()[..], text.as_bytes()].concat()
        };
        let number = |element: u16, number: u16| {
            [&[0x28, 0][..], &element.to_le_bytes(), b"US\x02\0", &number.to_le_bytes()].concat()
        };
        let pixels: Vec<u8> = (0..12).flat_map(|i| (i * 7 + z * 13).to_le_bytes()).collect();
        let meta = text([2, 0x10], "UI", "1.2.840.10008.1.2.1");
        let bytes = [
            &[0; 128][..],
            b"DICM\x02\0\0\0UL\x04\0",
            &(meta.len() as u32).to_le_bytes(),
            &meta,
            &text([8, 0x60], "CS", "MR"),
            &text([8, 0x103e], "LO", series),
            &text([0x20, 0xe], "UI", &format!("1.2.{}", series.len())),
            &text([0x20, 0x32], "DS", &format!("0\\0\\{z}")),
            &text([0x20, 0x37], "DS", "1\\0\\0\\0\\1\\0"),
            &number(2, 1),
            &text([0x28, 4], "CS", "MONOCHROME2"),
            &number(0x10, 3),
            &number(0x11, 4),
            &text([0x28, 0x30], "DS", "0.5\\0.5"),
            &number(0x100, 16),
            &number(0x101, 16),
            &number(0x102, 15),
            &number(0x103, 0),
            b"\xe0\x7f\x10\0OW\0\0",
            &(pixels.len() as u32).to_le_bytes(),
            &pixels,
        ];
        fs::write(self.file(&format!("{folder}/{}{series}{z}", series.len())), bytes.concat()).unwrap();
    }

    /// A DICOM segmentation for a series of [`Self::slice`]s: two pixels of `tumor` at the height `z`, one of `vessel` above.
    pub fn segmentation(&self, name: &str, z: u16) {
        let marks = |marked: &[usize]| (0..12).map(|at| marked.contains(&at)).collect();
        let segmentation = Segmentation {
            size: [3, 4],
            spacing: [0.5, 0.5],
            segments: vec![(1, "vessel"), (2, "tumor")],
            frames: vec![(2, f64::from(z), marks(&[5, 6])), (1, f64::from(z + 1), marks(&[11]))],
            is_fractional: false,
        };
        fs::write(self.file(name), segmentation.encode()).unwrap();
    }

    /// A DICOM series of some slices in a folder.
    pub fn series(&self, folder: &str, series: &str, slices: u16) {
        (0..slices).for_each(|z| self.slice(folder, series, z));
    }

    /// A pickle, gzipped if its name says so.
    pub fn pickle(&self, name: &str, object: &Object) {
        use std::io::Write;
        let mut bytes = [b"\x80\x04", object.as_slice(), b"."].concat();
        if name.ends_with(".gz") {
            let mut gzip = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
            gzip.write_all(&bytes).unwrap();
            bytes = gzip.finish().unwrap();
        }
        fs::write(self.file(name), bytes).unwrap();
    }

    /// What a text says with this folder's path taken out.
    pub fn anonymous(&self, text: &str) -> String {
        text.replace(&self.path().display().to_string(), "FOLDER")
    }
}

/// The opcodes of a pickle that build an object.
pub type Object = Vec<u8>;

pub fn text(text: &str) -> Object {
    [b"X", &(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat()
}

pub fn list(items: Vec<Object>) -> Object {
    [b"](", items.concat().as_slice(), b"e"].concat()
}

pub fn dict(pairs: Vec<(&str, Object)>) -> Object {
    let items: Vec<Object> = pairs.into_iter().map(|(key, value)| [text(key), value].concat()).collect();
    [b"}(", items.concat().as_slice(), b"u"].concat()
}

pub fn array(values: Voxels, shape: &[usize]) -> Object {
    let int = |&n: &usize| [b"J", &(n as u32).to_le_bytes()[..]].concat();
    let (dtype, data) = (format!("{:?}", values.kind()).to_lowercase(), values.to_le_bytes());
    let size = values.kind().bytes().to_string();
    let dtype = format!("{}{size}", &dtype[..1]);
    [
        b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\0\x85C\x01b\x87R(K\x01(",
        shape.iter().map(int).collect::<Vec<_>>().concat().as_slice(),
        b"tcnumpy\ndtype\n",
        &text(&dtype),
        b"\x89\x88\x87R(K\x03",
        &text("<"),
        b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb\x89B",
        &(data.len() as u32).to_le_bytes(),
        &data,
        b"tb",
    ]
    .concat()
}

/// A case of the LIDC pickle: 4 × 6, two raters, the first of whom marked `marked` pixels.
pub fn slice(series: &str, marked: usize) -> Object {
    let image = Voxels::F64((0..24).map(|i| f64::from(i) / 255.0).collect());
    let mask = |marked| array(Voxels::U8((0..24).map(|i| u8::from(i < marked)).collect()), &[4, 6]);
    dict(vec![
        ("image", array(image, &[4, 6])),
        ("masks", list(vec![mask(marked), mask(0)])),
        ("series_uid", text(series)),
    ])
}
