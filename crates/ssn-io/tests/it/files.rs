//! Files by name: every format goes round through the disk, and what cannot be read says which file and why.

use std::path::{Path, PathBuf};

use ssn_io::{Geometry, Image, Limits, Tolerance, Voxels, read, write};

fn image(shape: [usize; 4], geometry: Geometry) -> Image {
    let n: usize = shape.iter().product();
    let values = (0..n).map(|i| (i * 37 % 251) as u8).collect();
    Image::new(Voxels::U8(values), shape, geometry, &Limits::default()).unwrap()
}

fn turned() -> Geometry {
    Geometry {
        spacing: [0.5, 0.75, 2.0],
        origin: [-10.0, 20.0, 30.5],
        direction: [[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]],
    }
}

#[test]
fn volumes_go_round() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.nii", "a.nii.gz", "A.NII.GZ", "a.nrrd", "a.mha"] {
        let (path, written) = (folder.path().join(name), image([1, 4, 5, 6], turned()));
        write(&path, &written).unwrap();
        let back = read(&path, &Limits::default()).unwrap();
        assert_eq!((&back.voxels, back.shape), (&written.voxels, written.shape), "{name}");
        assert_eq!(back.geometry.differences(&written.geometry, Tolerance::default()), None, "{name}");
        let labels = back.with_labels(vec![1; 120]).unwrap();
        write(&path, &labels).unwrap();
        let again = read(&path, &Limits::default()).unwrap();
        assert_eq!(again.geometry, back.geometry, "{name}: a label map lies exactly where its image does");
        assert_eq!(again.to_labels().unwrap().data, vec![1; 120]);
    }
}

#[test]
fn pictures_go_round() {
    let folder = tempfile::tempdir().unwrap();
    for (name, shape) in [("a.png", [1, 1, 5, 6]), ("c.png", [3, 1, 5, 6]), ("a.tif", [1, 4, 5, 6])] {
        let (path, written) = (folder.path().join(name), image(shape, Geometry::default()));
        write(&path, &written).unwrap();
        let back = read(&path, &Limits::default()).unwrap();
        assert_eq!((back.voxels, back.shape), (written.voxels, written.shape), "{name}");
    }
}

/// In every format that says where the axes of an image point.
#[test]
fn axes_without_a_direction_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |name: &str, change: &dyn Fn(Vec<u8>) -> Vec<u8>| {
        let path = folder.path().join(name);
        let bytes = change(std::fs::read(&path).unwrap());
        std::fs::write(&path, bytes).unwrap();
        read(&path, &Limits::default()).unwrap_err().to_string()
    };
    for name in ["a.nii", "a.nrrd", "a.mha"] {
        write(&folder.path().join(name), &image([1, 4, 5, 6], turned())).unwrap();
    }
    // The rows of the sform.
    let said = refused("a.nii", &|mut bytes| {
        bytes[280..328].fill(0);
        bytes
    });
    assert!(said.contains("a.nii") && said.contains("three axes that span a volume"), "{said}");
    let line = |word: &'static str, zeros: &'static str| {
        move |bytes: Vec<u8>| {
            let start = bytes.windows(word.len()).position(|part| part == word.as_bytes()).unwrap();
            let end = start + bytes[start..].iter().position(|byte| *byte == b'\n').unwrap();
            [&bytes[..start], word.as_bytes(), zeros.as_bytes(), &bytes[end..]].concat()
        }
    };
    let said = refused("a.nrrd", &line("space directions:", " (0,0,0) (0,0,0) (0,0,0)"));
    assert!(said.contains("a.nrrd") && said.contains("space directions"), "{said}");
    let said = refused("a.mha", &line("TransformMatrix =", " 0 0 0 0 0 0 0 0 0"));
    assert!(said.contains("a.mha") && said.contains("TransformMatrix"), "{said}");
}

#[test]
fn refusals_name_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let message = |path: &Path| read(path, &Limits::default()).unwrap_err().to_string();
    let absent = folder.path().join("absent.nii");
    assert!(message(&absent).contains("absent.nii") && message(&absent).contains("No such file"));
    let unknown = folder.path().join("scan.xyz");
    assert!(message(&unknown).contains("scan.xyz") && message(&unknown).contains("images are .nii"));
    let empty = folder.path().join("empty.nii.gz");
    std::fs::write(&empty, b"").unwrap();
    assert!(message(&empty).contains("empty.nii.gz"));
    let large = folder.path().join("large.png");
    std::fs::write(&large, [0; 100]).unwrap();
    let limits = Limits { file_bytes: 99, ..Limits::default() };
    let refused = read(&large, &limits).unwrap_err().to_string();
    assert!(refused.contains("raise the limit `file_bytes`"), "{refused}");
    let refused = write(&folder.path().join("a.jpg"), &image([1, 1, 2, 2], Geometry::default())).unwrap_err();
    assert!(refused.to_string().contains("writing Jpeg"), "{refused}");
}

/// The datasets beside the repository.
fn shared(part: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(part)
}

fn files_below(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = vec![];
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_below(&path, endings));
        } else if endings.iter().any(|ending| path.to_string_lossy().ends_with(ending)) {
            found.push(path);
        }
    }
    found
}

#[test]
#[ignore = "needs the datasets beside the repository"]
fn brain_scans_are_read() {
    let folder = shared("data/brats2015");
    let files = files_below(&folder, &[".nii", ".nii.gz"]);
    assert_eq!(files.len(), 16);
    for path in files {
        let image = read(&path, &Limits::default()).unwrap();
        assert_eq!(image.shape, [1, 155, 240, 240], "{}", path.display());
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.contains("OTMultiClass") {
            assert!(image.to_labels().unwrap().data.iter().all(|&label| label <= 4), "{name}");
        }
        if name.contains("brainmask") {
            // Stored with a slope: only the scaled values are 0 and 1.
            let values = image.to_f32().data;
            assert!(values.iter().all(|&x| x.abs() < 1e-6 || (x - 1.0).abs() < 1e-6), "{name}");
        }
    }
}

#[test]
#[ignore = "needs the datasets beside the repository"]
fn pickled_data_sets_and_weights_are_read() {
    for (part, cases, raters) in [("data/brain_growth", 27, 7), ("data/lidc_sim", 384, 4)] {
        let folder = shared(part);
        let name = if raters == 7 { "brain_growth.pickle.gz" } else { "val.pickle.gz" };
        let bytes = ssn_io::read_bytes(&folder.join(name), &Limits::default()).unwrap();
        let pickle = ssn_io::formats::pickle::parse(&bytes, &Limits::default()).unwrap();
        let entries = pickle.root().entries().unwrap().unwrap();
        assert_eq!(entries.len(), cases, "{part}");
        for (_, case) in entries {
            assert_eq!(case.get("image").and_then(|image| image.array()).unwrap().unwrap().shape, [128, 128]);
            assert_eq!(case.get("masks").and_then(|masks| masks.items()).unwrap().len(), raters);
        }
    }
    let folder = shared("golden/deepmedic");
    for (name, tensors) in [("brats_full.pt", 195), ("small_2d.pt", 62), ("small_3d.pt", 83)] {
        let bytes = ssn_io::read_bytes(&folder.join(name), &Limits::default()).unwrap();
        let found = ssn_io::formats::torch_file::parse(&bytes, &Limits::default()).unwrap();
        assert_eq!(found.len(), tensors, "{name}");
    }
}
