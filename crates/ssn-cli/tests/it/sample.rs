//! `ssn sample`: what it writes is what the library draws, and what cannot be done is said.

use std::path::Path;

use ssn_core::{CategoricalSampler, LabelMap, SampleSummary, Sampler, Steering};
use ssn_eval::{DistributionFile, PredictionKind, Region, case_seed};
use ssn_io::{Geometry, Limits, read};
use tempfile::TempDir;

use crate::common::{Prediction, STORED, ssn, told};

/// A volume of three classes whose distribution covers a box.
fn volume() -> Prediction {
    Prediction {
        case: "p 1/a",
        classes: &["background", "core", "oedema"],
        kind: PredictionKind::Stochastic,
        size: [3, 4, 5],
        region: Region { start: [1, 0, 2], size: [2, 3, 2] },
        geometry: Geometry {
            spacing: [1.0, 2.0, 5.0],
            origin: [3.0, -4.0, 5.0],
            direction: [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]],
        },
        number: 3,
    }
}

fn folder(predictions: &[Prediction]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("in")).unwrap();
    for (i, prediction) in predictions.iter().enumerate() {
        prediction.write(&folder.path().join(format!("in/{i}.ssn.safetensors")));
    }
    folder
}

/// The labels `[d, h, w]` of a written sample.
fn labels(folder: &TempDir, name: &str) -> Vec<u8> {
    read(&folder.path().join(name), &Limits::default()).unwrap().to_labels().unwrap().data
}

fn expected(file: &DistributionFile, steering: &Steering, seed: u64, number: u64) -> Vec<u8> {
    let seed = case_seed(seed, &file.description().case);
    let sampler = Sampler::new(file.distribution(), seed, steering).unwrap();
    file.labels_on_image(&sampler.labels(number..number + 1).unwrap()[0]).unwrap()
}

#[test]
fn help() {
    insta::assert_snapshot!(told(&ssn(&tempfile::tempdir().unwrap(), &["sample", "--help"])));
}

#[test]
fn samples_are_those_of_seed_and_number_in_the_geometry_of_the_image() {
    let folder = folder(&[volume()]);
    let file = volume().file();
    for format in ["nii.gz", "nrrd", "mha", "seg.nrrd"] {
        let out = format!("out-{format}");
        let arguments = [
            "sample",
            "in",
            "--out",
            &out,
            "--samples",
            "3",
            "--seed",
            "7",
            "--first",
            "5",
            "--format",
            format,
        ];
        assert!(ssn(&folder, &arguments).status.success());
        for number in 5..8 {
            let name = format!("{out}/p%201%2Fa_sample_{number}.{format}");
            assert_eq!(labels(&folder, &name), expected(&file, &Steering::default(), 7, number), "{name}");
            let found = read(&folder.path().join(&name), &Limits::default()).unwrap().geometry;
            let same = found.differences(&volume().geometry, ssn_io::Tolerance::default());
            assert_eq!(same, None, "{name}");
        }
    }
    insta::assert_snapshot!(
        "samples_csv",
        std::fs::read_to_string(folder.path().join("out-nrrd/samples.csv")).unwrap()
    );
}

#[test]
fn pictures_may_be_png() {
    let folder = folder(&[Prediction::picture("a", 1), Prediction::picture("b", 2)]);
    let output = ssn(&folder, &["sample", "in", "--out", "out", "--samples", "2", "--format", "png"]);
    insta::assert_snapshot!("pictures", told(&output));
    for (id, number) in [("a", 1), ("b", 2)] {
        let file = Prediction::picture(id, number).file();
        assert_eq!(
            labels(&folder, &format!("out/{id}_sample_1.png")),
            expected(&file, &Steering::default(), 0, 1)
        );
    }
}

#[test]
fn all_of_steering_can_be_reached() {
    let folder = folder(&[volume()]);
    let cases: [(&[&str], Steering); 5] = [
        (&["--temperature", "-2.5"], Steering { temperature: -2.5, ..Steering::default() }),
        (
            &["--class-scale", "oedema=-3"],
            Steering { class_scales: vec![1.0, 1.0, -3.0], ..Steering::default() },
        ),
        (
            &["--mode-weight", "1=0", "--mode-weight", "0=4"],
            Steering { mode_weights: vec![4.0, 0.0], ..Steering::default() },
        ),
        (&["--no-diagonal-noise"], Steering { diagonal_noise: false, ..Steering::default() }),
        (&["--temperature=0"], Steering { temperature: 0.0, ..Steering::default() }),
    ];
    let file = volume().file();
    let plain: Vec<_> = (0..4).map(|i| expected(&file, &Steering::default(), 0, i)).collect();
    for (flags, steering) in cases {
        let arguments = [&["sample", "in", "--out", "out", "--samples", "4", "--overwrite"], flags].concat();
        assert!(ssn(&folder, &arguments).status.success(), "{flags:?}");
        let found: Vec<_> =
            (0..4).map(|i| labels(&folder, &format!("out/p%201%2Fa_sample_{i}.nii.gz"))).collect();
        let wanted: Vec<_> = (0..4).map(|i| expected(&file, &steering, 0, i)).collect();
        assert_eq!(found, wanted, "{flags:?}");
        assert_ne!(found, plain, "{flags:?} changes something");
    }
}

#[test]
fn probabilities_and_entropy_are_those_of_the_samples() {
    let folder = folder(&[volume()]);
    let arguments = [
        "sample",
        "in",
        "--out",
        "out",
        "--samples",
        "20",
        "--probabilities",
        "--entropy",
        "--format",
        "nrrd",
    ];
    assert!(ssn(&folder, &arguments).status.success());
    let file = volume().file();
    let sampler =
        Sampler::new(file.distribution(), case_seed(0, &file.description().case), &Steering::default())
            .unwrap();
    let mut summary = SampleSummary::new(&sampler, &[]).unwrap();
    summary.extend(&sampler, 0..20).unwrap();
    let image = |name: &str| read(&folder.path().join(name), &Limits::default()).unwrap().to_f32();
    let entropy = image("out/p%201%2Fa_marginal_entropy.nrrd");
    assert_eq!(entropy.data, file.values_on_image(&summary.marginal_entropy().unwrap(), 0.0).unwrap());
    let probabilities = image("out/p%201%2Fa_prob_maps.nrrd");
    assert_eq!(probabilities.shape, [3, 3, 4, 5]);
    let rows = summary.mean_probabilities().unwrap();
    assert_eq!(probabilities.data[60..120], file.values_on_image(&rows[12..24], 0.0).unwrap());
    for voxel in 0..60 {
        let sum: f32 = (0..3).map(|class| probabilities.data[class * 60 + voxel]).sum();
        assert!((sum - 1.0).abs() < 1e-5, "{voxel}: {sum}");
    }
}

#[test]
fn a_deterministic_network_shows_its_grain() {
    let deterministic = Prediction { kind: PredictionKind::Deterministic, ..Prediction::picture("a", 1) };
    let folder = folder(&[deterministic]);
    assert!(
        ssn(&folder, &["sample", "in", "--out", "out", "--samples", "3", "--seed", "9"]).status.success()
    );
    let file = Prediction { kind: PredictionKind::Deterministic, ..Prediction::picture("a", 1) }.file();
    let maps = CategoricalSampler::new(file.distribution(), case_seed(9, &file.description().case))
        .labels(0..3)
        .unwrap();
    for (number, map) in maps.iter().enumerate() {
        assert_eq!(labels(&folder, &format!("out/a_sample_{number}.nii.gz")), map.labels());
    }
    assert_ne!(maps[0], maps[1]);
    insta::assert_snapshot!(
        "no_noise",
        told(&ssn(&folder, &["sample", "in", "--out", "out2", "--temperature", "2"]))
    );
}

#[test]
fn samples_that_the_network_drew_are_written_as_they_are() {
    let sampled = || Prediction { kind: PredictionKind::Sampled, ..volume() };
    let folder = folder(&[sampled()]);
    let arguments = [
        "sample",
        "in",
        "--out",
        "out",
        "--samples",
        "3",
        "--first",
        "5",
        "--seed",
        "4",
        "--probabilities",
        "--entropy",
        "--format",
        "nrrd",
    ];
    let output = ssn(&folder, &arguments);
    assert!(output.status.success(), "{}", told(&output));
    let (file, stored) = (sampled().file(), sampled().stored());
    for number in 5..STORED {
        let map = LabelMap::new(stored[number * 12..(number + 1) * 12].to_vec(), 3).unwrap();
        let name = format!("out/p%201%2Fa_sample_{number}.nrrd");
        assert_eq!(labels(&folder, &name), file.labels_on_image(&map).unwrap(), "{name}");
    }
    let table = std::fs::read_to_string(folder.path().join("out/samples.csv")).unwrap();
    assert_eq!(table.lines().count(), 1 + 3 * 3);

    // The softmax of the mean, which holds the logarithm of the mean probabilities, and its entropy.
    let logit = |class: usize, voxel: usize| f64::from(file.distribution().mean().get(class * 12 + voxel));
    let probability =
        |class, voxel| logit(class, voxel).exp() / (0..3).map(|k| logit(k, voxel).exp()).sum::<f64>();
    let entropy = |voxel| {
        let terms = (0..3).map(|class| probability(class, voxel) * probability(class, voxel).ln());
        -terms.sum::<f64>() / 3f64.ln()
    };
    let image = |name: &str| read(&folder.path().join(name), &Limits::default()).unwrap().to_f32().data;
    let near = |found: &[f32], expected: &dyn Fn(usize) -> f64, outside: f32| {
        let expected: Vec<f32> = (0..12).map(|voxel| expected(voxel) as f32).collect();
        let expected = file.values_on_image(&expected, outside).unwrap();
        assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-5), "{found:?} {expected:?}");
    };
    let maps = image("out/p%201%2Fa_prob_maps.nrrd");
    near(&maps[..60], &|voxel| probability(0, voxel), 1.0);
    near(&maps[120..], &|voxel| probability(2, voxel), 0.0);
    near(&image("out/p%201%2Fa_marginal_entropy.nrrd"), &entropy, 0.0);
}

#[test]
fn of_a_network_that_draws_itself_there_is_no_more_than_it_drew() {
    let sampled = Prediction { kind: PredictionKind::Sampled, ..Prediction::picture("b", 2) };
    let folder = folder(&[Prediction::picture("a", 1), sampled]);
    let steered: [&[&str]; 4] = [
        &["--temperature", "2"],
        &["--class-scale", "lesion=2"],
        &["--mode-weight", "0=2"],
        &["--no-diagonal-noise"],
    ];
    let file = "in/1.ssn.safetensors";
    let told_of: Vec<String> = [&["--samples", "9"][..], &["--samples", "1", "--first", "8"]]
        .into_iter()
        .chain(steered)
        .map(|flags| told(&ssn(&folder, &[&["sample", file, "--out", "out"], flags].concat())))
        .collect();
    assert!(told_of[3..].iter().all(|told| *told == told_of[2]), "{told_of:?}");
    insta::assert_snapshot!("drawn_by_the_network", told_of[..3].join("\n"));
    // Of the first case any number could be drawn; the second is looked at before anything is written.
    assert_eq!(ssn(&folder, &["sample", "in", "--out", "out", "--samples", "9"]).status.code(), Some(2));
    assert!(!folder.path().join("out").exists(), "nothing was written");
    assert!(ssn(&folder, &["sample", "in", "--out", "out", "--samples", "8"]).status.success());
}

#[test]
fn json_says_what_the_table_says() {
    let folder = folder(&[Prediction::picture("a", 1)]);
    let output =
        ssn(&folder, &["sample", "in/0.ssn.safetensors", "--out", "out", "--samples", "2", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let table = std::fs::read_to_string(folder.path().join("out/samples.csv")).unwrap();
    let rows = json["samples"].as_array().unwrap();
    assert_eq!((rows.len(), table.lines().count()), (4, 5));
    for (row, line) in rows.iter().zip(table.lines().skip(1)) {
        let cells: Vec<&str> = line.split(',').collect();
        assert_eq!(row["id"], cells[0]);
        assert_eq!(row["sample"].to_string(), cells[1]);
        assert!(Path::new(row["file"].as_str().unwrap()).ends_with(cells[2]));
        assert_eq!(row["voxels"].to_string(), cells[4]);
    }
}

#[test]
fn what_cannot_be_done_is_said() {
    let folder = folder(&[volume()]);
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    std::fs::copy(folder.path().join("in/0.ssn.safetensors"), folder.path().join("copy.ssn.safetensors"))
        .unwrap();
    std::fs::write(folder.path().join("text.ssn.safetensors"), "something else").unwrap();
    assert!(ssn(&folder, &["sample", "in", "--out", "full", "--samples", "1"]).status.success());
    let before = std::fs::read(folder.path().join("full/samples.csv")).unwrap();
    let cases: [&[&str]; 12] = [
        &["in", "--out", "full", "--samples", "1"],
        &["in", "--out", "out", "--class-scale", "oedma=2"],
        &["in", "--out", "out", "--class-scale", "liver=2"],
        &["in", "--out", "out", "--mode-weight", "2=1"],
        &["in", "--out", "out", "--temperature", "hot"],
        &["in", "--out", "out", "--format", "png"],
        &["in", "--out", "out", "--format", "png", "--entropy"],
        &["in", "copy.ssn.safetensors", "--out", "out"],
        &["empty", "--out", "out"],
        &["absent.ssn.safetensors", "--out", "out"],
        &["text.ssn.safetensors", "--out", "out"],
        &["in", "--samples", "0", "--out", "out"],
    ];
    let all: Vec<String> =
        cases.iter().map(|arguments| told(&ssn(&folder, &[&["sample"], *arguments].concat()))).collect();
    insta::assert_snapshot!("refusals", all.join("\n"));
    assert!(!folder.path().join("out").exists(), "nothing was written");
    assert_eq!(std::fs::read(folder.path().join("full/samples.csv")).unwrap(), before);
}

#[test]
fn files_of_others_are_not_replaced() {
    let folder = folder(&[volume()]);
    std::fs::create_dir(folder.path().join("out")).unwrap();
    let path = folder.path().join("out/samples.csv");
    std::fs::write(&path, "of the user").unwrap();
    let output = ssn(&folder, &["sample", "in", "--out", "out", "--samples", "2", "--overwrite"]);
    assert_eq!(output.status.code(), Some(2), "{}", told(&output));
    assert_eq!(std::fs::read(&path).unwrap(), b"of the user");
    assert_eq!(
        std::fs::read_dir(folder.path().join("out")).unwrap().count(),
        2,
        "the list is there, and no sample"
    );
}
