//! What NRRD and MetaImage promise alike: images go round, and hostile or damaged bytes are refused.

use std::fs;
use std::io::Write;

use ssn_io::nrrd::Header;
use ssn_io::{ByteOrder, Geometry, Image, Limits, Problem, Tolerance, VoxelType, Voxels};

use crate::hostile_files;

type Read = Result<Image, Problem>;

/// A format with a text header.
pub struct TextFormat {
    /// Its folder of attacks.
    pub name: &'static str,
    pub parse: fn(&[u8], &Limits) -> Read,
    pub parse_header: fn(&[u8], &Limits) -> Result<Header, Problem>,
    pub encode: fn(&Image) -> Vec<u8>,
    pub encode_compressed: fn(&Image) -> Result<Vec<u8>, Problem>,
    /// How far a geometry may be from what was written.
    pub tolerance: Tolerance,
}

impl TextFormat {
    pub fn read(&self, bytes: &[u8]) -> Read {
        (self.parse)(bytes, &Limits::default())
    }

    pub fn refusal(&self, bytes: &[u8]) -> String {
        self.read(bytes).unwrap_err().to_string()
    }

    /// The image of a header and a data file.
    fn read_detached(&self, header: &[u8], data: &[u8]) -> Read {
        (self.parse_header)(header, &Limits::default())?.image(data, &Limits::default())
    }

    fn written(&self, image: &Image) -> [Vec<u8>; 2] {
        [(self.encode)(image), (self.encode_compressed)(image).unwrap()]
    }

    /// The same stored bits (which may be NaN), shape and place.
    fn assert_same(&self, a: &Image, b: &Image) {
        assert_eq!((a.shape, a.voxels.kind()), (b.shape, b.voxels.kind()));
        assert!(a.voxels.to_le_bytes() == b.voxels.to_le_bytes());
        assert_eq!(a.geometry.differences(&b.geometry, self.tolerance), None);
    }

    pub fn every_type_goes_round(&self) {
        for kind in VoxelType::ALL {
            for shape in [[1, 4, 3, 2], [3, 4, 3, 2], [2, 1, 3, 2], [1, 1, 1, 1]] {
                let image = image(kind, shape);
                for bytes in self.written(&image) {
                    self.assert_same(&image, &self.read(&bytes).unwrap());
                }
            }
        }
    }

    pub fn a_scaled_image_is_written_as_its_values(&self) {
        let mut scaled = image(VoxelType::U8, [1, 1, 2, 2]);
        (scaled.slope, scaled.intercept) = (0.5, -3.0);
        let back = self.read(&(self.encode)(&scaled)).unwrap();
        assert_eq!(back.voxels, Voxels::F64(scaled.voxels.scaled_f64(0.5, -3.0)));
        assert_eq!((back.slope, back.intercept), (1.0, 0.0));
    }

    pub fn every_cut_is_refused(&self) {
        for whole in self.written(&image(VoxelType::I16, [2, 2, 2, 2])) {
            for length in 0..whole.len() {
                assert!(self.read(&whole[..length]).is_err(), "{length} bytes");
            }
        }
    }

    /// Every file of the folder of attacks is refused with a text that contains its fragment. A header that names
    /// another file is tried with a file as short as can be.
    pub fn attacks_are_refused(&self, cases: &[(&str, &str)]) {
        hostile_files::all(self.name, cases, |path| {
            let bytes = fs::read(path).unwrap();
            let message = self.refusal(&bytes);
            match message.contains("beside it") {
                true => self.read_detached(&bytes, &[]).unwrap_err().to_string(),
                false => message,
            }
        });
    }

    /// A header may name one file beside it and nothing else; `header` makes one that names a file.
    pub fn only_plain_names_of_data_files_pass(&self, header: impl Fn(&str) -> Vec<u8>) {
        for good in ["a.raw", " scan 1.raw.gz ", "..a", ".hidden", "LISTE.raw"] {
            let message = self.refusal(&header(good));
            assert!(
                message.contains(&format!("{:?} is not supported; open it with", good.trim())),
                "{message}"
            );
        }
        for bad in ["", ".", "..", "-", "/etc/passwd", "../a.raw", "a/b", "a\\b", "C:a.raw", "a\0b", "./a"] {
            let message = self.refusal(&header(bad));
            assert!(message.contains("plain name of one file"), "{message}");
        }
        for several in ["LIST", "LIST 2", "slice%03d.raw 1 10 1"] {
            let message = self.refusal(&header(several));
            assert!(message.contains("several files"), "{message}");
        }
    }

    /// Distances of voxels are positive and not extreme; `file` makes a file with such a distance.
    pub fn spacings_that_cannot_be_worked_with_are_refused(&self, file: impl Fn(&str) -> Vec<u8>) {
        for bad in ["0", "-1", "nan", "inf", "1e-300", "1e10"] {
            let message = self.refusal(&file(bad));
            assert!(message.contains("a distance from 1e-9 to 1e9 mm along every axis"), "{bad}: {message}");
        }
        assert!(self.read(&file("1e9")).is_ok());
    }

    /// A header longer than the limit is not read on, whether its lines end or not.
    pub fn a_long_header_meets_the_limit(&self, headers: &[Vec<u8>]) {
        for header in headers {
            let limits = Limits { header_bytes: 100, ..Limits::default() };
            let message = (self.parse)(header, &limits).unwrap_err().to_string();
            assert!(message.contains("raise the limit `header_bytes`"), "{message}");
        }
    }

    /// A file in one of four forms; the last is one of the format's own.
    pub fn sample(&self, form: usize, kind: VoxelType, own: Vec<u8>) -> Vec<u8> {
        match form {
            0 => (self.encode)(&image(kind, [1, 2, 2, 2])),
            1 => (self.encode)(&image(kind, [3, 1, 2, 2])),
            2 => (self.encode_compressed)(&image(kind, [2, 2, 1, 2])).unwrap(),
            _ => own,
        }
    }

    /// Any bytes are refused, or are an image that goes round.
    pub fn any_bytes_are_refused_or_go_round(&self, bytes: &[u8]) {
        if let Ok(image) = self.read(bytes) {
            self.assert_same(&image, &self.read(&(self.encode)(&image)).unwrap());
        }
        let _ = self.read_detached(bytes, bytes);
    }
}

fn image(kind: VoxelType, shape: [usize; 4]) -> Image {
    let count = shape.iter().product::<usize>() * kind.bytes();
    let bytes: Vec<u8> = (0..count).map(|i| (i * 37 + 11) as u8).collect();
    let voxels = Voxels::from_bytes(kind, &bytes, ByteOrder::Little);
    let turned = Geometry {
        spacing: [0.7, 0.9, 2.5],
        origin: [-90.25, 12.5, 1e-7],
        direction: [[0.8, -0.6, 0.0], [0.6, 0.8, 0.0], [0.0, 0.0, -1.0]],
    };
    Image::new(voxels, shape, turned, &Limits::default()).unwrap()
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(vec![], flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
