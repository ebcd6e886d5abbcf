//! Small files that claim enormous sizes, under a limit of memory: each is refused with one sentence, and no program ends any
//! other way.

use std::path::Path;

use serde_json::{Value, json};
use ssn_eval::Region;
use ssn_io::Geometry;

use crate::common::{Prediction, limited};

/// Kibibytes of memory that the program may have.
const LIMITS: [u64; 2] = [1 << 20, 3 << 20];

/// A few voxels of an image of another size.
fn of_image(size: [usize; 3]) -> Prediction {
    Prediction { size, ..Prediction::picture("claim", 0) }
}

/// Takes a file apart, changes its header, and puts it together again.
fn with_header(path: &Path, change: impl Fn(&mut Value)) -> Vec<u8> {
    let bytes = std::fs::read(path).unwrap();
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let mut header: Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    change(&mut header);
    let header = serde_json::to_vec(&header).unwrap();
    [&(header.len() as u64).to_le_bytes(), header.as_slice(), &bytes[8 + length..]].concat()
}

/// Writes the files; gives their names.
fn write_claims(folder: &Path) -> Vec<String> {
    let mut names = vec![];
    let mut add = |name: &str, bytes: Vec<u8>| {
        assert!(bytes.len() < 10_000, "{name} has {} bytes", bytes.len());
        let name = format!("{name}.ssn.safetensors");
        std::fs::write(folder.join(&name), bytes).unwrap();
        names.push(name);
    };
    let path = folder.join("last");
    let mut claim = |name: &str, prediction: Prediction| {
        prediction.write(&path);
        add(name, std::fs::read(&path).unwrap());
    };
    // These are right in every other way, with their SHA-256.
    claim("volume", of_image([2040, 2040, 2040]));
    claim("below-the-limit-of-browsers", of_image([1000, 1000, 1999]));
    claim("line", of_image([1, 8, (1 << 30) - 1]));
    let small = Prediction::picture("claim", 0).file();
    small.resampled_from([(1 << 33) - 1, 1, 1], Geometry::default()).unwrap().write(&path).unwrap();
    add("grid", std::fs::read(&path).unwrap());
    Prediction::picture("claim", 0).write(&path);
    let mut changed = |name: &str, change: &dyn Fn(&mut Value)| add(name, with_header(&path, change));
    let set = |header: &mut Value, tensor: &str, key: &str, value: Value| header[tensor][key] = value;
    changed("shape", &|header| set(header, "mean", "shape", json!([2, 1u64 << 40])));
    changed("offsets", &|header| {
        set(header, "mean", "shape", json!([2, 1u64 << 40]));
        set(header, "mean", "data_offsets", json!([0, 1u64 << 43]));
    });
    changed("overflow", &|header| {
        set(header, "factor", "shape", json!([1u64 << 32, 1u64 << 32, 1u64 << 32]))
    });
    changed("rank", &|header| set(header, "factor", "shape", json!([1_000_000, 2, 64])));
    changed("type", &|header| set(header, "mean", "dtype", json!("F64")));
    changed("overlap", &|header| header["mean"]["data_offsets"] = header["diagonal"]["data_offsets"].clone());
    let bytes = std::fs::read(&path).unwrap();
    for (name, length) in [("header", 15u64 << 20), ("long-header", 1 << 40), ("longest-header", u64::MAX)] {
        add(name, [&length.to_le_bytes(), &bytes[8..]].concat());
    }
    std::fs::remove_file(&path).unwrap();
    names
}

#[test]
fn claims_are_refused_with_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let names = write_claims(folder.path());
    assert_eq!(names.len(), 13);
    for (name, limit) in names.iter().flat_map(|name| LIMITS.map(|limit| (name, limit))) {
        for arguments in [
            &["sample", name, "--out", "samples", "--samples", "2"][..],
            &["sample", name, "--out", "samples", "--probabilities", "--entropy"],
            &["view", name, "--export", "page.html"],
        ] {
            let output = limited(limit).args(arguments).current_dir(&folder).output().unwrap();
            let told = String::from_utf8(output.stderr).unwrap();
            let place = format!("{arguments:?} under {limit} KiB: {:?} {told}", output.status);
            assert!(matches!(output.status.code(), Some(65 | 77)), "{place}");
            let errors: Vec<&str> = told.lines().filter(|line| line.starts_with("error: ")).collect();
            assert!(errors.len() == 1 && told.ends_with(&format!("{}\n", errors[0])), "{place}");
        }
    }
}

/// From the least memory with which the program starts at all: threads, and then all else, are refused.
#[test]
fn too_little_memory_is_told() {
    let folder = tempfile::tempdir().unwrap();
    Prediction::picture("small", 0).write(&folder.path().join("small.ssn.safetensors"));
    let run = |limit: u64, arguments: &[&str]| {
        limited(limit).args(arguments).current_dir(&folder).output().unwrap()
    };
    let least = (1..4096).map(|step| step << 11).find(|&limit| run(limit, &["--version"]).status.success());
    let arguments = ["sample", "small.ssn.safetensors", "--out", "samples", "--overwrite"];
    let mut refused = 0;
    for limit in (0..40).map(|step| least.unwrap() + (step << 14)) {
        let output = run(limit, &arguments);
        let told = String::from_utf8(output.stderr).unwrap();
        let place = format!("under {limit} KiB: {:?} {told}", output.status);
        assert!(matches!(output.status.code(), Some(0 | 77)), "{place}");
        if output.status.code() == Some(77) {
            refused += 1;
            assert!(told.starts_with("error: ") && told.lines().count() == 1, "{place}");
        }
    }
    assert!((1..40).contains(&refused), "the limits showed nothing: {refused} were too low");
}

/// A file of gigabytes that takes no room on the disk.
#[test]
fn a_file_with_holes_takes_no_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("holes.ssn.safetensors");
    Prediction::picture("claim", 0).write(&path);
    let voxels = 1u64 << 30;
    let text = |header: &mut Value| {
        let mut about: Value = serde_json::from_str(header["__metadata__"]["ssn"].as_str().unwrap()).unwrap();
        about["size"] = json!([1024, 1024, 1024]);
        about["region"] = json!(Region::whole([1024; 3]));
        header["__metadata__"]["ssn"] = about.to_string().into();
        let tensor = |shape: Value, start: u64, end: u64| json!({ "dtype": "F16", "shape": shape, "data_offsets": [start, end] });
        header["diagonal"] = tensor(json!([2, voxels]), 0, 4 * voxels);
        header["mean"] = tensor(json!([2, voxels]), 4 * voxels, 8 * voxels);
        header["factor"] = tensor(json!([0, 2, voxels]), 8 * voxels, 8 * voxels);
    };
    let mut bytes = with_header(&path, text);
    let length = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap());
    bytes.truncate(length as usize);
    std::fs::write(&path, bytes).unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_len(length + 8 * voxels).unwrap();
    let arguments = ["sample", "holes.ssn.safetensors", "--out", "samples"];
    let output = limited(LIMITS[1]).args(arguments).current_dir(&folder).output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(77), "{told}");
    assert!(told.contains("holes.ssn.safetensors needs 8192 MiB of memory"), "{told}");
}
