//! A distribution file gives back what was written, to the bit, or says why not.

use std::path::Path;

use ssn_core::{LabelMap, LowRankNormal, Values};
use ssn_eval::{
    CaseDescription, DistributionFile, ErrorKind, PredictionKind, Region, StoredImage, StoredPrecision,
};
use ssn_io::{Geometry, Limits, Voxels};

use crate::common::{self, description, distribution, file};

fn written(file: &DistributionFile, path: &Path) -> DistributionFile {
    file.write(path).unwrap();
    DistributionFile::read(path, &Limits::default()).unwrap()
}

#[test]
fn what_is_written_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.ssn.safetensors");
    let without_mask = DistributionFile::new(description("b"), distribution(3, 12, 0, 2), None).unwrap();
    for precision in [StoredPrecision::Single, StoredPrecision::HalfFactor, StoredPrecision::Half] {
        for file in [file("a/ü \"1\""), without_mask.clone()] {
            let file = file.with_precision(precision).unwrap();
            assert_eq!(written(&file, &path), file);
        }
    }
    let half = file("a").with_precision(StoredPrecision::HalfFactor).unwrap();
    assert!(matches!(half.distribution().factor(), Values::F16(_)));
    assert!(matches!(half.distribution().mean(), Values::F32(_)));
    assert_eq!(half.distribution().mean(), file("a").distribution().mean());
}

#[test]
fn bytes_in_memory_need_no_hash_and_files_do() {
    let (folder, file) = (tempfile::tempdir().unwrap(), file("a"));
    let (path, limits) = (folder.path().join("a.ssn.safetensors"), Limits::default());
    let bytes = file.to_bytes().unwrap();
    assert_eq!(DistributionFile::of_bytes(bytes.clone(), &limits).unwrap(), file);
    assert!(DistributionFile::of_bytes(bytes[..bytes.len() - 1].to_vec(), &limits).is_err());
    std::fs::write(&path, &bytes).unwrap();
    let error = DistributionFile::read(&path, &limits).unwrap_err().to_string();
    assert!(error.contains("SHA-256"), "{error}");
    file.write(&path).unwrap();
    let mut hashed = std::fs::read(&path).unwrap();
    assert_eq!(DistributionFile::of_bytes(hashed.clone(), &limits).unwrap(), file);
    *hashed.last_mut().unwrap() ^= 1;
    assert!(DistributionFile::of_bytes(hashed, &limits).unwrap_err().to_string().contains("SHA-256"));
}

#[test]
fn a_single_class_has_two_labels() {
    let folder = tempfile::tempdir().unwrap();
    let mut about = description("a");
    about.classes.pop();
    let file = DistributionFile::new(about, distribution(1, 12, 1, 3), None).unwrap();
    let back = written(&file, &folder.path().join("a"));
    assert_eq!((back.labels(), back.distribution().classes()), (2, 1));
}

#[test]
fn the_same_content_gives_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b] = ["a", "b"].map(|name| folder.path().join(name));
    file("x").write(&a).unwrap();
    written(&file("x"), &b).write(&b).unwrap();
    assert_eq!(std::fs::read(&a).unwrap(), std::fs::read(&b).unwrap());
}

#[test]
fn other_tools_can_read_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let file = file("x");
    file.write(&path).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(tensors.tensor("factor").unwrap().shape(), [2, 3, 12]);
    let first = f32::from_le_bytes(tensors.tensor("mean").unwrap().data()[..4].try_into().unwrap());
    assert_eq!(first, file.distribution().mean().get(0));
    let (_, header) = safetensors::SafeTensors::read_metadata(&bytes).unwrap();
    let about: serde_json::Value = serde_json::from_str(&header.metadata().as_ref().unwrap()["ssn"]).unwrap();
    assert_eq!((&about["version"], &about["case"]), (&1.into(), &"x".into()));
    assert_eq!(about["region"]["start"], serde_json::json!([1, 0, 2]));
}

#[test]
fn the_header_is_read_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    file("x").write(&path).unwrap();
    let header = DistributionFile::read_header(&path, &Limits::default()).unwrap();
    assert_eq!((&header.description, header.rank), (&description("x"), 2));
    let other = file("x").with_precision(StoredPrecision::Half).unwrap();
    other.write(&path).unwrap();
    let changed = DistributionFile::read_header(&path, &Limits::default()).unwrap();
    assert_ne!(changed.sha256, header.sha256);
}

#[test]
fn labels_take_their_place_and_come_back() {
    let with_mask = file("a");
    let labels: Vec<u8> = (0..12).map(|i| 1 + i % 2).collect();
    let map = LabelMap::new(labels.clone(), 3).unwrap();
    let image = with_mask.labels_on_image(&map).unwrap();
    for (at, &label) in image.iter().enumerate() {
        let (z, y, x) = (at / 20, at / 5 % 4, at % 5);
        let inside = (1..3).contains(&z) && y < 3 && (2..4).contains(&x);
        let region = if inside { ((z - 1) * 3 + y) * 2 + x - 2 } else { 3 };
        let expected = if inside && region % 5 != 3 { labels[region] } else { 0 };
        assert_eq!(label, expected, "{at}");
    }
    let everywhere = DistributionFile::new(description("a"), distribution(3, 12, 2, 1), None).unwrap();
    let whole = everywhere.labels_on_image(&map).unwrap();
    assert_eq!(everywhere.crop_to_region(&whole).unwrap(), labels);

    let entropy = with_mask.values_on_image(&[0.5; 12], -1.0).unwrap();
    assert_eq!(entropy.iter().filter(|&&x| x == 0.5).count(), 10);

    let stored = with_mask.as_image(image.clone()).unwrap();
    assert_eq!((stored.voxels, stored.shape), (Voxels::U8(image), [1, 3, 4, 5]));
    assert_eq!(stored.geometry, description("a").geometry);
    assert!(with_mask.crop_to_region(&[0; 12]).is_err() && with_mask.as_image(vec![0; 12]).is_err());
    assert!(with_mask.labels_on_image(&LabelMap::new(vec![0; 11], 3).unwrap()).is_err());
}

#[test]
fn what_was_resampled_lies_on_the_grid_of_the_image() {
    let folder = tempfile::tempdir().unwrap();
    let (size, spacing) = ([3, 8, 11], [0.35, 0.45, 1.0 / 3.0]);
    let geometry = Geometry { spacing, ..description("a").geometry };
    let file = file("a").resampled_from(size, geometry).unwrap();
    let file = written(&file, &folder.path().join("a"));
    let about = file.description();
    let grid = about.network_grid.unwrap();
    assert_eq!((about.size, about.geometry), (size, geometry));
    assert_eq!((grid.size, grid.spacing), ([3, 4, 5], [1.0 / 3.0, 0.9, 0.7]));
    let header = DistributionFile::read_header(&folder.path().join("a"), &Limits::default()).unwrap();
    assert_eq!(header.description, *about);

    // Every voxel has what the voxel of the network has whose center is nearest, both grids having the same middle.
    let labels: Vec<u8> = (0..12).map(|i| 1 + i % 2).collect();
    let map = LabelMap::new(labels, 3).unwrap();
    let on_network = common::file("a").labels_on_image(&map).unwrap();
    let on_image = file.labels_on_image(&map).unwrap();
    let nearest = |i: usize, n: usize, step: f64, m: usize| {
        let place = |i: usize, n: usize| i as f64 - 0.5 * (n as f64 - 1.0);
        let away = |j: &usize| (place(*j, m) - place(i, n) * step).abs();
        (0..m).min_by(|a, b| away(a).total_cmp(&away(b)).then(b.cmp(a))).unwrap()
    };
    for (at, &label) in on_image.iter().enumerate() {
        let (z, y, x) = (at / 88, at / 11 % 8, at % 11);
        let [y, x] = [nearest(y, 8, 0.5, 4), nearest(x, 11, 0.5, 5)];
        assert_eq!(label, on_network[(z * 4 + y) * 5 + x], "{at}");
    }
    // The likelihood of raters is that on the grid of the network.
    let coarse = LabelMap::new(vec![2; 12], 3).unwrap();
    let everywhere = DistributionFile::new(description("a"), distribution(3, 12, 2, 1), None).unwrap();
    let everywhere = everywhere.resampled_from(size, geometry).unwrap();
    let fine = everywhere.labels_on_image(&coarse).unwrap();
    assert_eq!(everywhere.crop_to_region(&fine).unwrap(), coarse.labels());
    assert!(everywhere.crop_to_region(&[0; 60]).is_err(), "a label map on the grid of the network");
    assert_eq!(
        common::file("a").resampled_from([3, 4, 5], description("a").geometry).unwrap(),
        common::file("a")
    );
}

#[test]
fn label_maps_are_stored_as_the_image_and_its_labels_are() {
    let folder = tempfile::tempdir().unwrap();
    let mut header =
        ssn_io::nifti::encode(&file("a").as_image(vec![0; 60]).unwrap(), ssn_io::nifti::Version::One)
            .unwrap();
    header.truncate(348);
    // Aligned in the qform, MNI in the sform, and microns.
    (header[252], header[254], header[123]) = (2, 4, 3);
    let image = StoredImage {
        sha256: "1".to_owned(),
        has_spacing: true,
        trained_on: false,
        label_values: Some(vec![0, 128, 255]),
        nifti_header: Some(header.iter().map(|byte| format!("{byte:02x}")).collect()),
    };
    let geometry =
        ssn_io::nifti::parse(&[&header[..], &[0; 4 + 60]].concat(), &Limits::default()).unwrap().geometry;
    let about = CaseDescription { geometry, ..description("a") };
    let file = DistributionFile::new(about, distribution(3, 12, 2, 1), None).unwrap().of_image(Some(image));
    let file = written(&file, &folder.path().join("a"));
    let path = folder.path().join("a.nii");
    ssn_io::write(&path, &file.as_image((0..60).map(|i| i % 3).collect()).unwrap()).unwrap();
    let stored = std::fs::read(&path).unwrap();
    assert_eq!((stored[252], stored[254], stored[123]), (2, 4, 3));
    assert_eq!(stored[352..358], [0, 128, 255, 0, 128, 255]);
}

#[test]
fn parts_that_disagree_are_refused() {
    let refuse = |change: &dyn Fn(&mut CaseDescription), d: LowRankNormal, mask: Option<Vec<u8>>| {
        let mut about = description("a");
        change(&mut about);
        DistributionFile::new(about, d, mask).unwrap_err().to_string()
    };
    let good = || distribution(3, 12, 2, 1);
    insta::assert_snapshot!(
        [
            refuse(&|_| {}, distribution(2, 12, 1, 1), None),
            refuse(&|_| {}, distribution(3, 11, 1, 1), None),
            refuse(&|about| about.classes.clear(), good(), None),
            refuse(&|about| about.kind = PredictionKind::Deterministic, good(), None),
            refuse(&|about| about.kind = PredictionKind::Deterministic, distribution(3, 12, 0, 1), None),
            refuse(&|about| about.region.start[2] = 4, good(), None),
            refuse(
                &|about| about.region = Region { start: [usize::MAX, 0, 0], size: [2, 3, 2] },
                good(),
                None
            ),
            refuse(&|about| about.size = [0, 4, 5], good(), None),
            refuse(&|about| about.geometry.spacing[1] = 0.0, good(), None),
            refuse(&|about| about.geometry.origin[0] = f64::NAN, good(), None),
            refuse(&|about| about.geometry.direction = [[0.0; 3]; 3], good(), None),
            refuse(&|_| {}, good(), Some(vec![1; 3])),
            refuse(&|_| {}, good(), Some(vec![2; 12])),
        ]
        .join("\n")
    );
    let large = LowRankNormal::new(3, 12, 0, vec![1e6f32; 36], vec![0f32; 36], vec![0f32; 0]).unwrap();
    let file = DistributionFile::new(description("a"), large, None).unwrap();
    let error = file.with_precision(StoredPrecision::Half).unwrap_err();
    assert_eq!(error.kind, ErrorKind::BadData, "{error}");
}
