//! Small cases for tests, packages read back, and a server to talk to.

pub mod client;

use serde_json::Value;
use ssn_core::LowRankNormal;
use ssn_eval::{CaseDescription, DistributionFile, ModelId, PredictionKind, Region};
use ssn_io::Geometry;
use ssn_testing::noise;
use ssn_view::{Rater, StoredPicture, ViewCase};

/// Normal numbers that a stream makes.
pub fn noise(stream: u32, count: usize) -> Vec<f32> {
    noise::numbers(3, stream, count)
}

/// What a distribution is about: all of an image, of three classes or of as many as are named.
pub fn about(kind: PredictionKind, size: [usize; 3], classes: &[&str]) -> CaseDescription {
    CaseDescription {
        case: "patient <7>".to_owned(),
        classes: classes.iter().map(|&name| name.to_owned()).collect(),
        kind,
        size,
        geometry: Geometry { spacing: [0.5, 0.75, 2.0], origin: [1.0, 2.0, 3.0], ..Geometry::default() },
        region: Region::whole(size),
        model: ModelId { sha256: "5f".to_owned(), name: "small".to_owned() },
        network_grid: None,
        image: None,
        labels_only: false,
    }
}

/// A distribution of noise over a number of logits and a rank.
pub fn distribution(classes: usize, voxels: usize, rank: usize) -> LowRankNormal {
    noise::distribution(3, [classes, voxels, rank], |x| 0.1 * x * x)
}

/// A stochastic case of two classes and rank 3 on a box of a small volume, with a mask, two channels and two raters.
pub fn boxed_case() -> ViewCase {
    let size = [4, 6, 8];
    let region = Region { start: [1, 2, 3], size: [2, 3, 4] };
    let about =
        CaseDescription { region, ..about(PredictionKind::Stochastic, size, &["background", "lesion"]) };
    let mask: Vec<u8> = (0..24).map(|x| u8::from(x % 5 != 0)).collect();
    let file = DistributionFile::new(about, distribution(2, 24, 3), Some(mask)).unwrap();
    let picture = StoredPicture {
        channels: vec!["t1".to_owned(), "t2".to_owned()],
        color: false,
        values: noise(9, 2 * 192),
    };
    let rater = |number: usize| Rater {
        name: format!("rater {number}"),
        labels: (0..192).map(|x| u8::from(x % (number + 2) == 0)).collect(),
    };
    ViewCase { file, picture: Some(picture), raters: vec![rater(0), rater(1)], scores: None }
}

/// A package, taken apart.
pub struct Parsed {
    pub header: Value,
    /// What follows the header.
    pub body: Vec<u8>,
}

impl Parsed {
    pub fn new(bytes: &[u8]) -> Self {
        assert_eq!(&bytes[..8], b"SSNVIEW1");
        let length = u32::from_le_bytes(bytes[8..12].try_into().unwrap()) as usize;
        assert_eq!((&bytes[12..16], length % 8), (&[0; 4][..], 0));
        let header: Value = serde_json::from_slice(&bytes[16..16 + length]).unwrap();
        let body = bytes[16 + length..].to_vec();
        let mut places: Vec<(u64, u64)> = vec![];
        for (name, place) in header["sections"].as_object().unwrap() {
            let (offset, bytes) = (place["offset"].as_u64().unwrap(), place["bytes"].as_u64().unwrap());
            assert_eq!(offset % 8, 0, "{name}");
            places.push((offset, offset + bytes));
        }
        places.sort();
        assert!(places.windows(2).all(|pair| pair[0].1 <= pair[1].0), "sections do not overlap");
        assert_eq!(places.last().unwrap().1, body.len() as u64, "nothing comes after the last");
        Self { header, body }
    }

    pub fn place(&self, name: &str) -> Option<&Value> {
        self.header["sections"].get(name)
    }

    /// Type, shape and bytes of a section.
    pub fn section(&self, name: &str) -> (&str, Vec<usize>, &[u8]) {
        let place = self.place(name).unwrap_or_else(|| panic!("no section {name}"));
        let shape: Vec<usize> = serde_json::from_value(place["shape"].clone()).unwrap();
        let [offset, bytes] = ["offset", "bytes"].map(|key| place[key].as_u64().unwrap() as usize);
        let kind = place["type"].as_str().unwrap();
        let width = match kind {
            "u8" => 1,
            "u16" | "f16" => 2,
            _ => 4,
        };
        assert_eq!(shape.iter().product::<usize>() * width, bytes, "{name}");
        (kind, shape, &self.body[offset..offset + bytes])
    }

    pub fn f32s(&self, name: &str) -> Vec<f32> {
        let (kind, _, bytes) = self.section(name);
        assert_eq!(kind, "f32");
        bytes.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b)).collect()
    }

    pub fn u32s(&self, name: &str) -> Vec<u32> {
        let (kind, _, bytes) = self.section(name);
        assert_eq!(kind, "u32");
        bytes.as_chunks().0.iter().map(|&b| u32::from_le_bytes(b)).collect()
    }

    pub fn u8s(&self, name: &str) -> Vec<u8> {
        let (kind, _, bytes) = self.section(name);
        assert_eq!(kind, "u8");
        bytes.to_vec()
    }
}
