//! Whatever is done to a distribution file, reading it gives the same content or a sentence, and never panics.

use std::path::PathBuf;

use safetensors::Dtype;
use safetensors::tensor::TensorView;
use ssn_eval::DistributionFile;
use ssn_io::Limits;
use tempfile::TempDir;

use crate::common::{self, file, sampled};

struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("a.ssn.safetensors")
    }

    /// What reading these bytes gives; an error without the path of the folder.
    fn read(&self, bytes: &[u8]) -> Result<DistributionFile, String> {
        std::fs::write(self.path(), bytes).unwrap();
        DistributionFile::read(&self.path(), &Limits::default())
            .map_err(|error| error.to_string().replace(&self.path().display().to_string(), "FILE"))
    }
}

fn bytes_of(file: &DistributionFile) -> Vec<u8> {
    let place = Place::new();
    file.write(&place.path()).unwrap();
    std::fs::read(place.path()).unwrap()
}

fn bytes() -> Vec<u8> {
    bytes_of(&file("a"))
}

#[test]
fn cut_at_any_length_it_is_refused() {
    let place = Place::new();
    for bytes in [file("a"), sampled("a")].map(|file| bytes_of(&file)) {
        for length in 0..bytes.len() {
            let message = place.read(&bytes[..length]).unwrap_err();
            assert!(message.contains("cut off"), "{length}: {message}");
            assert!(DistributionFile::read_header(&place.path(), &Limits::default()).is_err(), "{length}");
        }
        assert!(place.read(&bytes).is_ok());
    }
}

#[test]
fn changed_in_any_byte_it_is_refused_or_the_same() {
    let place = Place::new();
    for expected in [file("a"), sampled("a")] {
        let mut bytes = bytes_of(&expected);
        for at in 0..bytes.len() {
            for change in [0x01, 0x20, 0x80] {
                bytes[at] ^= change;
                if let Ok(found) = place.read(&bytes) {
                    assert_eq!(found, expected, "byte {at} changed by {change:#x}");
                }
                bytes[at] ^= change;
            }
        }
    }
}

/// A file made with the format's own library, whose hash is not the right one.
fn foreign(text: Option<&str>, tensors: &[(&str, Dtype, &[usize])]) -> Vec<u8> {
    let zeros = vec![0; 1000];
    let views = tensors.iter().map(|(name, kind, shape)| {
        let bytes = shape.iter().product::<usize>() * kind.bitsize() / 8;
        (*name, TensorView::new(*kind, shape.to_vec(), &zeros[..bytes]).unwrap())
    });
    let metadata =
        text.map(|text| [("ssn", text), ("sha256", "0")].map(|(k, v)| (k.to_owned(), v.to_owned())).into());
    safetensors::serialize(views.collect::<Vec<_>>(), metadata).unwrap()
}

#[test]
fn files_that_hold_other_things_are_named() {
    let place = Place::new();
    let good = {
        std::fs::write(place.path(), bytes()).unwrap();
        let whole = std::fs::read(place.path()).unwrap();
        let (_, header) = safetensors::SafeTensors::read_metadata(&whole).unwrap();
        header.metadata().as_ref().unwrap()["ssn"].clone()
    };
    let f = Dtype::F32;
    let tensors = [("mean", f, &[3, 12][..]), ("diagonal", f, &[3, 12]), ("factor", f, &[1, 3, 12])];
    let with = |index: usize, tensor| {
        let mut tensors = tensors.to_vec();
        tensors[index] = tensor;
        tensors
    };
    let refused = |text: Option<&str>, tensors: &[_]| place.read(&foreign(text, tensors)).unwrap_err();
    let good_text = Some(good.as_str());
    let changed = |from: &str, to: &str| {
        assert!(good.contains(from), "{good}");
        good.replace(from, to)
    };
    insta::assert_snapshot!(
        [
            place.read(b"not a tensor in sight").unwrap_err(),
            place.read(&[bytes(), vec![0]].concat()).unwrap_err(),
            refused(None, &tensors),
            refused(Some("{}"), &tensors),
            refused(Some("[1"), &tensors),
            refused(Some(&changed("\"version\":1", "\"version\":3")), &tensors),
            refused(Some(&changed("\"size\":[3,4,5]", "\"size\":[3,4,1]")), &tensors),
            refused(Some(&changed("\"size\":[3,4,5]", "\"size\":[90000,90000,90000]")), &tensors),
            refused(Some(&changed("\"size\":[3,4,5]", "\"size\":[9223372036854775807,4,5]")), &tensors),
            refused(Some(&changed("stochastic", "deterministic")), &tensors),
            refused(good_text, &with(0, ("mean", f, &[3, 11]))),
            refused(good_text, &with(2, ("factor", f, &[3, 12]))),
            refused(good_text, &with(2, ("factr", f, &[1, 3, 12]))),
            refused(good_text, &with(1, ("diagonal", Dtype::F64, &[3, 12]))),
            refused(good_text, &tensors[..2]),
            refused(good_text, &tensors),
        ]
        .join("\n")
    );
}

#[test]
fn samples_that_do_not_fit_are_named() {
    let place = Place::new();
    let whole = bytes_of(&sampled("a"));
    let (_, header) = safetensors::SafeTensors::read_metadata(&whole).unwrap();
    let text = header.metadata().as_ref().unwrap()["ssn"].clone();
    let (f, b) = (Dtype::F32, Dtype::U8);
    let tensors = [
        ("mean", f, &[3, 12][..]),
        ("diagonal", f, &[3, 12]),
        ("factor", f, &[0, 3, 12]),
        ("samples", b, &[2, 12]),
    ];
    let with = |index: usize, tensor| {
        let mut tensors = tensors.to_vec();
        tensors[index] = tensor;
        tensors
    };
    let refused = |text: &str, tensors: &[_]| {
        let message = place.read(&foreign(Some(text), tensors)).unwrap_err();
        let header = DistributionFile::read_header(&place.path(), &Limits::default());
        (message, header.is_err())
    };
    // The shapes are refused with the header alone; the type and the content need the rest.
    let of_header = [
        refused(&text, &tensors[..3]),
        refused(&text, &with(3, ("samples", b, &[0, 12]))),
        refused(&text, &with(3, ("samples", b, &[2, 11]))),
        refused(&text, &with(3, ("samples", b, &[24]))),
        refused(&text, &with(2, ("factor", f, &[1, 3, 12]))),
        refused(&text.replace("sampled", "stochastic"), &tensors),
        refused(&text.replace("sampled", "deterministic"), &tensors),
        refused(&text.replace("sampled", "guessed"), &tensors),
    ];
    assert!(of_header.iter().all(|(_, by_header)| *by_header));
    let of_rest = [refused(&text, &with(3, ("samples", f, &[2, 12]))), refused(&text, &tensors)];
    assert!(of_rest.iter().all(|(_, by_header)| !by_header));
    let all: Vec<String> = of_header.into_iter().chain(of_rest).map(|(message, _)| message).collect();
    insta::assert_snapshot!(all.join("\n"));

    // Labels without a name, and noise, with the right hash around them.
    let view = safetensors::SafeTensors::deserialize(&whole).unwrap();
    let place_of = |name: &str| {
        let data = view.tensor(name).unwrap().data();
        data.as_ptr() as usize - whole.as_ptr() as usize
    };
    let mut bytes = whole.clone();
    bytes[place_of("samples") + 5] = 3;
    assert_eq!(
        place.read(&with_right_hash(bytes)).unwrap_err(),
        "FILE: a sample has the label 3, but the labels are 0 to 2; choose a file that `ssn predict` wrote"
    );
    let mut bytes = whole.clone();
    bytes[place_of("diagonal")..][..4].copy_from_slice(&1f32.to_le_bytes());
    assert_eq!(
        place.read(&with_right_hash(bytes)).unwrap_err(),
        "FILE: a network that draws samples itself has rank 0 and a diagonal of zeros; choose a file that `ssn predict` \
         wrote"
    );
}

#[test]
fn numbers_that_are_not_finite_are_named() {
    // A file with the right hash around a wrong number: made by writing, then found by its value.
    let place = Place::new();
    let marked = {
        let values = (0..36).map(|i| if i == 7 { 1234.5 } else { 0.0 }).collect::<Vec<f32>>();
        let d = ssn_core::LowRankNormal::new(3, 12, 0, values, vec![0f32; 36], vec![0f32; 0]).unwrap();
        DistributionFile::new(common::description("a"), d, None).unwrap()
    };
    marked.write(&place.path()).unwrap();
    let mut bytes = std::fs::read(place.path()).unwrap();
    let at = bytes.windows(4).position(|window| window == 1234.5f32.to_le_bytes()).unwrap();
    bytes[at..at + 4].copy_from_slice(&f32::NAN.to_le_bytes());
    assert!(place.read(&bytes).unwrap_err().contains("SHA-256"), "the hash is looked at first");
    let bytes = with_right_hash(bytes);
    let message = place.read(&bytes).unwrap_err();
    assert_eq!(message, "FILE: mean[7] is NaN, but every value must be finite; predict the case again");
}

/// Puts the hash of the content into the header, as docs/reference/distribution-files.md describes it.
fn with_right_hash(bytes: Vec<u8>) -> Vec<u8> {
    use sha2::{Digest, Sha256};
    let (_, header) = safetensors::SafeTensors::read_metadata(&bytes).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let metadata = header.metadata().clone().unwrap();
    let text = &metadata["ssn"];
    let mut hash = Sha256::new();
    hash.update(format!("{} {text}\n", text.len()));
    let mut names = file.names();
    names.sort();
    for name in names {
        let view = file.tensor(name).unwrap();
        hash.update(format!("{name} {:?} {:?}\n", view.dtype(), view.shape()));
        hash.update(view.data());
    }
    let found: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    let old = metadata["sha256"].as_bytes();
    let at = bytes.windows(old.len()).position(|window| window == old).unwrap();
    let mut bytes = bytes;
    bytes[at..at + old.len()].copy_from_slice(found.as_bytes());
    bytes
}
