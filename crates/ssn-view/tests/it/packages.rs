//! Packages hold the numbers of the file to the bit, and everything else that the page needs.

use half::f16;
use serde_json::json;
use ssn_core::labels::CLASS_COLORS;
use ssn_eval::{DistributionFile, PredictionKind, StoredPrecision};
use ssn_io::ErrorKind;
use ssn_view::{Packing, StoredPicture, ViewCase, package};

use crate::common::{Parsed, about, boxed_case, distribution, noise};

fn pack(case: &ViewCase) -> Parsed {
    Parsed::new(&package(case, &Packing::default()).unwrap())
}

/// A case of all of an image without anything beside it.
fn plain(kind: PredictionKind, size: [usize; 3]) -> ViewCase {
    let v = size.iter().product();
    let about = about(kind, size, &["a", "b", "c"]);
    let file = match kind {
        PredictionKind::Stochastic => DistributionFile::new(about, distribution(3, v, 4), None),
        PredictionKind::Deterministic => DistributionFile::new(
            about,
            ssn_core::LowRankNormal::new(3, v, 0, noise(0, 3 * v), vec![0f32; 3 * v], vec![0f32; 0]).unwrap(),
            None,
        ),
        PredictionKind::Sampled => {
            let labels: Vec<u8> = (0..5 * v).map(|i| (i * 7 % 3) as u8).collect();
            DistributionFile::sampled(about, noise(0, 3 * v), labels, None)
        }
    };
    ViewCase { file: file.unwrap(), picture: None, raters: vec![], scores: None }
}

#[test]
fn the_header_says_what_the_case_is() {
    let case = boxed_case();
    let packing = Packing { seed: u64::MAX, crop: false };
    let header = Parsed::new(&package(&case, &packing).unwrap()).header;
    let about = case.file.description();
    for (key, value) in [
        ("version", json!(1)),
        ("name", json!("patient <7>")),
        ("kind", json!("stochastic")),
        ("model", json!({ "sha256": "5f", "name": "small" })),
        ("classes", json!(["background", "lesion"])),
        ("logits", json!(2)),
        ("rank", json!(3)),
        ("size", json!([4, 6, 8])),
        ("spacing", json!([2.0, 0.75, 0.5])),
        ("affine", json!([[0.5, 0.0, 0.0, 1.0], [0.0, 0.75, 0.0, 2.0], [0.0, 0.0, 2.0, 3.0]])),
        ("region", json!({ "start": [1, 2, 3], "size": [2, 3, 4] })),
        ("shown", json!({ "start": [0, 0, 0], "size": [4, 6, 8] })),
        ("seed", json!("18446744073709551615")),
        ("color", json!(false)),
        ("raters", json!(["rater 0", "rater 1"])),
    ] {
        assert_eq!(header[key], value, "{key}");
    }
    assert_eq!(header["frozen"]["voxels"], 0);
    assert_eq!(header["frozen"]["limit"], json!({ "temperature": 3.0, "class": 3.0, "mode": 3.0 }));
    assert_eq!(header["affine"], json!(about.geometry.affine()));
    // Over the voxels of the mask.
    let inside = |(i, x): (usize, f32)| if i % 24 % 5 == 0 { 0.0 } else { x };
    let factor: Vec<f32> =
        case.file.distribution().factor().to_f32().into_iter().enumerate().map(inside).collect();
    let squares: Vec<f64> = factor.chunks(48).map(square).collect();
    for (mode, square) in header["modes"].as_array().unwrap().iter().zip(&squares) {
        let share = square / squares.iter().sum::<f64>();
        assert!((mode["share"].as_f64().unwrap() - share).abs() < 1e-12);
    }
}

fn square(column: &[f32]) -> f64 {
    column.iter().map(|&x| f64::from(x) * f64::from(x)).sum()
}

#[test]
fn numbers_of_the_mask_are_there_to_the_bit() {
    let case = boxed_case();
    let parsed = pack(&case);
    let inside: Vec<u32> = (0..24).filter(|x| x % 5 != 0).collect();
    assert_eq!(parsed.u32s("voxels"), inside);
    let d = case.file.distribution();
    for (name, values, shape) in [
        ("mean", d.mean(), vec![2, 19]),
        ("diagonal", d.diagonal(), vec![2, 19]),
        ("factor", d.factor(), vec![3, 2, 19]),
    ] {
        assert_eq!(parsed.section(name).1, shape);
        let expected: Vec<u32> = values
            .to_f32()
            .chunks(24)
            .flat_map(|row| inside.iter().map(|&x| row[x as usize].to_bits()))
            .collect();
        let found: Vec<u32> = parsed.f32s(name).iter().map(|x| x.to_bits()).collect();
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn half_precision_stays_half_precision() {
    let case = plain(PredictionKind::Stochastic, [1, 5, 7]);
    let file = case.file.clone().with_precision(StoredPrecision::HalfFactor).unwrap();
    let parsed = pack(&ViewCase { file: file.clone(), ..case });
    assert!(parsed.place("voxels").is_none(), "all voxels of a small image are there");
    let (kind, shape, bytes) = parsed.section("factor");
    assert_eq!((kind, shape), ("f16", vec![4, 3, 35]));
    let found: Vec<f16> = bytes.as_chunks().0.iter().map(|&b| f16::from_le_bytes(b)).collect();
    assert!(matches!(file.distribution().factor(), ssn_core::Values::F16(values) if *values == found));
    assert_eq!(parsed.f32s("mean"), file.distribution().mean().to_f32());
    let all_half = file.with_precision(StoredPrecision::Half).unwrap();
    let parsed = pack(&ViewCase { file: all_half, picture: None, raters: vec![], scores: None });
    assert_eq!(["mean", "diagonal"].map(|name| parsed.section(name).0), ["f16", "f16"]);
}

#[test]
fn raters_prediction_and_image_lie_on_the_whole_image() {
    let case = boxed_case();
    let parsed = pack(&case);
    let labels: Vec<u8> = case.raters.iter().flat_map(|rater| rater.labels.clone()).collect();
    assert_eq!((parsed.section("raters").1, parsed.u8s("raters")), (vec![2, 4, 6, 8], labels));
    let prediction = case.file.labels_on_image(&case.file.prediction().unwrap()).unwrap();
    assert!(prediction.contains(&1));
    assert_eq!((parsed.section("prediction").1, parsed.u8s("prediction")), (vec![4, 6, 8], prediction));
    let (kind, shape, bytes) = parsed.section("image");
    assert_eq!((kind, shape), ("u16", vec![2, 4, 6, 8]));
    let values = &case.picture.as_ref().unwrap().values;
    for (i, word) in bytes.as_chunks().0.iter().enumerate() {
        let channel = &parsed.header["channels"][i / 192];
        let [low, high] = ["low", "high"].map(|key| channel[key].as_f64().unwrap());
        let shown = low + f64::from(u16::from_le_bytes(*word)) * (high - low) / 65535.0;
        assert!((shown - f64::from(values[i])).abs() <= (high - low) / 131_000.0, "voxel {i}");
    }
    assert_eq!(parsed.header["channels"][1]["name"], "t2");
}

#[test]
fn a_cut_image_shows_all_that_matters() {
    let size = [1, 60, 70];
    let about = about(PredictionKind::Stochastic, size, &["background", "lesion"]);
    // The prediction is background but in one pixel, and only the box can change.
    let region = ssn_eval::Region { start: [0, 20, 30], size: [1, 4, 5] };
    let about = ssn_eval::CaseDescription { region, ..about };
    let file = DistributionFile::new(about, distribution(2, 20, 1), None).unwrap();
    let mut labels = vec![0; 4200];
    labels[45 * 70 + 40] = 1;
    let rater = ssn_view::Rater { name: "rater 3".to_owned(), labels };
    let picture = StoredPicture {
        channels: vec!["x".to_owned()],
        color: false,
        values: (0..4200).map(|i| (i % 200) as f32).collect(),
    };
    let case = ViewCase { file, picture: Some(picture), raters: vec![rater], scores: None };
    let parsed = Parsed::new(&package(&case, &Packing { seed: 0, crop: true }).unwrap());
    assert_eq!(parsed.header["shown"], json!({ "start": [0, 12, 22], "size": [1, 42, 27] }));
    let image = parsed.u8s("image");
    assert_eq!(
        (image.len(), image[0], image[28]),
        (42 * 27, ((12 * 70 + 22) % 200) as u8, ((13 * 70 + 23) % 200) as u8)
    );
    assert_eq!(parsed.u8s("raters")[(45 - 12) * 27 + 40 - 22], 1);
    assert_eq!(parsed.u8s("raters").iter().filter(|label| **label > 0).count(), 1);
    assert_eq!(parsed.header["region"]["start"], json!([0, 20, 30]), "voxels are numbered as before");
}

#[test]
fn other_kinds_have_what_they_need() {
    let parsed = pack(&plain(PredictionKind::Deterministic, [1, 5, 7]));
    assert_eq!(
        (parsed.header["kind"].as_str(), parsed.header["rank"].as_u64()),
        (Some("deterministic"), Some(0))
    );
    assert!(
        ["diagonal", "factor", "samples", "image", "raters"].iter().all(|name| parsed.place(name).is_none())
    );
    assert_eq!(parsed.f32s("mean"), noise(0, 105));
    let case = plain(PredictionKind::Sampled, [1, 5, 7]);
    let parsed = pack(&case);
    assert_eq!(
        (parsed.section("samples").1, parsed.u8s("samples")),
        (vec![5, 35], case.file.samples().unwrap().to_vec())
    );
    assert_eq!(parsed.header["modes"], json!([]));
    assert_eq!(parsed.header["channels"], json!([]));
}

#[test]
fn a_single_class_has_one_row_and_two_names() {
    let about = about(PredictionKind::Stochastic, [1, 4, 4], &["off", "on"]);
    let file = DistributionFile::new(about, distribution(1, 16, 2), None).unwrap();
    let parsed = pack(&ViewCase { file, picture: None, raters: vec![], scores: None });
    assert_eq!(
        (parsed.header["logits"].as_u64(), parsed.header["classes"].as_array().unwrap().len()),
        (Some(1), 2)
    );
    assert_eq!(parsed.section("factor").1, [2, 1, 16]);
}

#[test]
fn colors_are_told_from_channels() {
    let mut case = plain(PredictionKind::Stochastic, [1, 4, 4]);
    let names = |count: usize| (0..count).map(|i| i.to_string()).collect::<Vec<_>>();
    case.picture = Some(StoredPicture { channels: names(3), color: true, values: vec![7.0; 48] });
    assert_eq!(pack(&case).header["color"], true);
    case.picture = Some(StoredPicture { channels: names(2), color: false, values: vec![7.0; 32] });
    assert_eq!(pack(&case).header["color"], false);
}

#[test]
fn parts_of_other_cases_are_refused() {
    let mut case = boxed_case();
    case.raters[1].labels.pop();
    let error = package(&case, &Packing::default()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::BadData);
    let expected = "case patient <7>: the label map of rater 1 has 191 voxels, but 192 were expected";
    assert_eq!(error.to_string(), expected);
    let mut case = boxed_case();
    case.picture.as_mut().unwrap().values.pop();
    let error = package(&case, &Packing::default()).unwrap_err().to_string();
    assert!(error.contains("383 values, but 2 channels of 192 voxels"), "{error}");
}

/// The page, reports and Python show a class in one color.
#[test]
fn the_page_has_the_colors_of_figures() {
    let source = include_str!("../../page/src/color.ts");
    let list =
        source.split("const CLASSES: readonly Color[] = [").nth(1).unwrap().split("];").next().unwrap();
    let color = |text: &str| text.split(", ").map(|part| part.trim().to_owned()).collect::<Vec<_>>();
    let found: Vec<_> = list.split('[').skip(1).map(|text| color(text.split(']').next().unwrap())).collect();
    let expected = CLASS_COLORS.map(|color| color.map(|part| format!("0x{part:02x}")).to_vec());
    assert_eq!(found, expected);
}
