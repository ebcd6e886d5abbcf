//! `ssn evaluate`: the table, what is kept, and what is refused.

use std::process::Output;

use ssn_core::metrics::ged;
use ssn_core::{BitPlanes, LabelMap};
use ssn_eval::{About, PredictionKind, Predictions, Region};
use ssn_io::{Geometry, Limits, read};
use tempfile::TempDir;

use crate::common::{Prediction, model, picture, ssn, told};

const CASES: [&str; 3] = ["case1", "case2", "case10"];

/// A dataset `set/` of three pictures with two raters, a config that says that all are for test, and predictions.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (number, id) in CASES.into_iter().enumerate() {
        picture(&folder.path().join(format!("set/images/{id}.png")), |i| (i * 11 % 200) as u8);
        picture(&folder.path().join(format!("set/labels/{id}_0.png")), |i| u8::from(i < 20 + number));
        // The second rater finds nothing in the last case.
        picture(&folder.path().join(format!("set/labels/{id}_1.png")), |i| u8::from(i < 10 && number < 2));
    }
    let split =
        "method = \"by hand\"\ntest = [\"case1\", \"case2\", \"case10\"]\ntrain = []\nvalidation = []\n";
    std::fs::write(folder.path().join("split.toml"), split).unwrap();
    std::fs::write(folder.path().join("ssn.toml"), "[data]\npath = \"set\"\n").unwrap();
    predict(&folder, "predictions", PredictionKind::Stochastic);
    folder
}

/// A folder for predictions of the test cases.
fn create(folder: &TempDir, name: &str) -> Predictions {
    let about = About {
        model: model(),
        seed: 0,
        dataset: "set".to_owned(),
        split: "test".to_owned(),
        images: None,
        labels: None,
        labels_only: false,
    };
    Predictions::create(&folder.path().join(name), about).unwrap()
}

fn predict(folder: &TempDir, name: &str, kind: PredictionKind) -> Predictions {
    let predictions = create(folder, name);
    for (number, id) in CASES.into_iter().enumerate() {
        Prediction { kind, ..Prediction::picture(id, number as u64) }
            .write(&predictions.distribution_path(id));
    }
    predictions
}

fn evaluate(folder: &TempDir, arguments: &[&str]) -> Output {
    ssn(folder, &[&["evaluate", "predictions", "--data", "ssn.toml", "--quiet"], arguments].concat())
}

#[test]
fn help() {
    insta::assert_snapshot!(told(&ssn(&tempfile::tempdir().unwrap(), &["evaluate", "--help"])));
}

/// Draws and scores samples by the commands, and compares GED² with that of the files.
fn assert_scored_as_sampled(folder: &TempDir, predictions: &str) {
    let drawn = ["--samples", "20", "--seed", "5", "--quiet"];
    let scored = ssn(folder, &[&["evaluate", predictions, "--data", "ssn.toml"][..], &drawn].concat());
    assert!(scored.status.success(), "{}", told(&scored));
    let sampled = ssn(folder, &[&["sample", predictions, "--out", "samples"][..], &drawn].concat());
    assert!(sampled.status.success(), "{}", told(&sampled));
    let planes = |names: &[String]| -> Vec<BitPlanes> {
        let labels = |name: &String| read(&folder.path().join(name), &Limits::default()).unwrap().to_labels();
        names
            .iter()
            .map(|name| BitPlanes::new(&LabelMap::new(labels(name).unwrap().data, 2).unwrap()))
            .collect()
    };
    let csv = std::fs::read_to_string(folder.path().join(predictions).join("evaluation/cases.csv")).unwrap();
    let column = csv.lines().next().unwrap().split(',').position(|key| key == "ged2_20").unwrap();
    for (case, row) in CASES.into_iter().zip(csv.lines().skip(1)) {
        let samples: Vec<String> = (0..20).map(|i| format!("samples/{case}_sample_{i}.nii.gz")).collect();
        let raters: Vec<String> = (0..2).map(|i| format!("set/labels/{case}_{i}.png")).collect();
        let expected = ged(&planes(&samples), &planes(&raters)).unwrap().squared;
        let scored: f64 = row.split(',').nth(column).unwrap().parse().unwrap();
        assert!((scored - expected).abs() < 1e-12, "{case}: {scored} and {expected}");
    }
}

#[test]
fn scores_are_those_of_the_samples_that_sample_writes() {
    assert_scored_as_sampled(&folder(), "predictions");
}

#[test]
fn the_table_and_the_files() {
    let folder = folder();
    insta::assert_snapshot!("table", told(&evaluate(&folder, &["--samples", "20"])));
    let csv = std::fs::read_to_string(folder.path().join("predictions/evaluation/cases.csv")).unwrap();
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.iter().map(|row| row[0]).collect::<Vec<_>>(), ["id", "case1", "case2", "case10"]);
    let column = |name: &str| rows[0].iter().position(|key| *key == name).unwrap();
    assert!(rows.iter().all(|row| row.len() == rows[0].len()));

    let summary = folder.path().join("predictions/evaluation/summary.json");
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(&summary).unwrap()).unwrap();
    let figure = |key: &str| {
        let figures = json["figures"].as_array().unwrap();
        figures.iter().find(|figure| figure["key"] == key).unwrap().clone()
    };
    let mean = rows[1..].iter().map(|row| row[column("ged2_20")].parse::<f64>().unwrap()).sum::<f64>() / 3.0;
    assert!((figure("ged2_20")["mean"].as_f64().unwrap() - mean).abs() < 1e-12);
    // Pooled over pairs of case and rater; the pair without anything marked has no DSC_nod.
    assert_eq!((&figure("dsc lesion")["values"], &figure("dsc lesion")["cases"]), (&6.into(), &3.into()));
    assert_eq!(figure("dsc_nod lesion")["values"], 5);
    assert_eq!(figure("dsc_nod lesion")["undefined"], 1);

    let printed = evaluate(&folder, &["--samples", "20", "--json"]).stdout;
    assert_eq!(printed, std::fs::read(&summary).unwrap());
}

#[test]
fn a_deterministic_network_has_no_diversity_unless_its_voxels_are_drawn() {
    let folder = folder();
    predict(&folder, "plain", PredictionKind::Deterministic);
    let run = |more: &[&str]| {
        ssn(&folder, &[&["evaluate", "plain", "--data", "ssn.toml", "--fast", "-q"], more].concat())
    };
    insta::assert_snapshot!("deterministic", told(&run(&["--samples", "20"])));
    let json = run(&["--samples", "20", "--categorical", "--json", "--out", "other"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    let diversity =
        json["figures"].as_array().unwrap().iter().find(|f| f["key"] == "sample_diversity").unwrap();
    assert!(diversity["mean"].as_f64().unwrap() > 0.0);
}

#[test]
fn samples_that_the_network_drew_are_scored() {
    let folder = folder();
    predict(&folder, "drawn", PredictionKind::Sampled);
    let run = |more: &[&str]| {
        ssn(&folder, &[&["evaluate", "drawn", "--data", "ssn.toml", "--quiet"], more].concat())
    };
    let refused = run(&["--samples", "9"]);
    assert!(!folder.path().join("drawn/evaluation").exists(), "nothing was written");
    insta::assert_snapshot!("drawn", format!("{}\n{}", told(&refused), told(&run(&["--samples", "8"]))));

    // GED² of each case by hand, from the stored maps and the labels of the raters.
    let csv = std::fs::read_to_string(folder.path().join("drawn/evaluation/cases.csv")).unwrap();
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let cell = |row: usize, name: &str| rows[row][rows[0].iter().position(|key| *key == name).unwrap()];
    for (number, id) in CASES.into_iter().enumerate() {
        let planes = |labels: Vec<u8>| BitPlanes::new(&LabelMap::new(labels, 2).unwrap());
        let stored =
            Prediction { kind: PredictionKind::Sampled, ..Prediction::picture(id, number as u64) }.stored();
        let samples: Vec<BitPlanes> = stored.chunks(64).map(|map| planes(map.to_vec())).collect();
        let raters = [
            planes((0..64).map(|i| u8::from(i < 20 + number)).collect()),
            planes((0..64).map(|i| u8::from(i < 10 && number < 2)).collect()),
        ];
        let expected = ged(&samples, &raters).unwrap().squared;
        let found: f64 = cell(number + 1, "ged2_8").parse().unwrap();
        assert!((found - expected).abs() < 1e-12, "{id}: {found} {expected}");
        assert_eq!((cell(number + 1, "samples"), cell(number + 1, "log_likelihood")), ("8", ""));
    }
    // Another seed changes nothing but what is said of it.
    let figures = |output: Output| {
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()["figures"].clone()
    };
    let other = run(&["--samples", "8", "--seed", "3", "--categorical", "--out", "other", "--json"]);
    assert_eq!(figures(other), figures(run(&["--samples", "8", "--json"])));
}

/// The content and the time of change of every kept case.
fn records(folder: &TempDir) -> Vec<(Vec<u8>, std::time::SystemTime)> {
    let cases = folder.path().join("predictions/evaluation/cases");
    let of = |id: &str| {
        let path = cases.join(format!("{id}.json"));
        (std::fs::read(&path).unwrap(), std::fs::metadata(&path).unwrap().modified().unwrap())
    };
    CASES.map(of).to_vec()
}

#[test]
fn finished_cases_are_not_scored_again() {
    let folder = folder();
    let run = |more: &[&str]| {
        let output = evaluate(&folder, &[&["--samples", "5", "--fast", "--json"], more].concat());
        assert!(output.status.success(), "{}", told(&output));
        output.stdout
    };
    let first = run(&[]);
    let before = records(&folder);
    assert_eq!(run(&[]), first);
    assert_eq!(records(&folder), before, "nothing was scored again");

    // A record whose digits are others, though its numbers are the same.
    let record = folder.path().join("predictions/evaluation/cases/case2.json");
    let whole = std::fs::read_to_string(&record).unwrap();
    let point = whole.find("0.").unwrap() + 2;
    let digits = whole[point..].find(|c: char| !c.is_ascii_digit()).unwrap();
    let (start, end) = whole.split_at(point + digits);
    std::fs::write(&record, format!("{start}0{end}")).unwrap();
    run(&[]);
    assert_eq!(std::fs::read_to_string(&record).unwrap(), whole);

    // Another prediction of the second case, and a record of the third that cannot be read.
    let predictions = Predictions::open(&folder.path().join("predictions")).unwrap();
    Prediction::picture("case2", 77).write(&predictions.distribution_path("case2"));
    std::fs::write(folder.path().join("predictions/evaluation/cases/case10.json"), "{").unwrap();
    let second = run(&[]);
    let after = records(&folder);
    assert_ne!(second, first);
    assert_eq!(after[0], before[0]);
    assert_ne!(after[1].0, before[1].0);
    assert_eq!(after[2].0, before[2].0);

    // The dataset and settings are looked at too.
    let refused = evaluate(&folder, &["--samples", "6", "--fast"]);
    insta::assert_snapshot!("other_settings", told(&refused));
    let output = evaluate(&folder, &["--samples", "6", "--fast", "--overwrite"]);
    assert!(output.status.success());
    assert!(records(&folder).iter().zip(&after).all(|(new, old)| new.0 != old.0));
}

#[test]
fn threads_change_nothing() {
    let folder = folder();
    let run = |threads: &str, out: &str| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_ssn"))
            .args([
                "evaluate",
                "predictions",
                "--data",
                "ssn.toml",
                "--samples",
                "30",
                "--json",
                "-q",
                "--out",
                out,
            ])
            .current_dir(folder.path())
            .env("RAYON_NUM_THREADS", threads)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", told(&output));
        output.stdout
    };
    assert_eq!(run("1", "one"), run("2", "two"));
}

#[test]
fn resampled_predictions_are_scored_on_the_grid_of_the_image() {
    let folder = folder();
    let predictions = create(&folder, "coarse");
    // The network has half of the image's voxels along each axis.
    let (size, spacing) = ([1, 4, 4], [2.0, 2.0, 1.0]);
    let geometry = Geometry { spacing, ..Geometry::default() };
    let coarse =
        |id| Prediction { size, region: Region::whole(size), geometry, ..Prediction::picture(id, 1) };
    for id in CASES {
        let file = coarse(id).file().resampled_from([1, 8, 8], Geometry::default()).unwrap();
        file.write(&predictions.distribution_path(id)).unwrap();
    }
    assert_scored_as_sampled(&folder, "coarse");
    // On the grid of the network they do not fit the images.
    coarse(CASES[0]).write(&predictions.distribution_path(CASES[0]));
    let output = ssn(&folder, &["evaluate", "coarse", "--data", "ssn.toml", "--fast", "-q", "--out", "x"]);
    insta::assert_snapshot!("other_grid", told(&output));
}

#[test]
fn what_does_not_fit_is_said() {
    let folder = folder();
    let place = |name: &str| folder.path().join(name);
    let mut told_of = vec![];
    let mut tell =
        |arguments: &[&str]| told_of.push(told(&ssn(&folder, &[&["evaluate"], arguments].concat())));
    tell(&["set", "--data", "ssn.toml"]);
    tell(&["predictions", "--data", "set"]);
    tell(&["predictions", "--data", "absent"]);
    tell(&["predictions", "--data", "ssn.toml", "--split", "train"]);
    tell(&["predictions", "--data", "ssn.toml", "--split", "tset"]);
    tell(&["predictions", "--data", "ssn.toml", "--group", "all=leson"]);
    tell(&["predictions", "--data", "ssn.toml", "--group", "all=background+lesion"]);
    tell(&["predictions", "--data", "ssn.toml", "--samples", "0"]);
    let path = place("predictions/case2.ssn.safetensors");
    let bytes = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    tell(&["predictions", "--data", "ssn.toml", "--fast"]);
    Prediction::picture("stranger", 4).write(&place("predictions/stranger.ssn.safetensors"));
    tell(&["predictions", "--data", "ssn.toml", "--fast", "--allow-missing"]);
    std::fs::remove_file(place("predictions/stranger.ssn.safetensors")).unwrap();
    Prediction { classes: &["background", "core", "rim"], ..Prediction::picture("case2", 4) }.write(&path);
    tell(&["predictions", "--data", "ssn.toml", "--fast"]);
    let mut damaged = bytes.clone();
    *damaged.last_mut().unwrap() ^= 1;
    std::fs::write(&path, &damaged).unwrap();
    tell(&["predictions", "--data", "ssn.toml", "--fast", "--quiet"]);
    insta::assert_snapshot!("refusals", told_of.join("\n"));

    std::fs::remove_file(&path).unwrap();
    let output = evaluate(&folder, &["--fast", "--samples", "4", "--allow-missing", "--json", "--overwrite"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&json["cases"], &json["missing"]), (&2.into(), &serde_json::json!(["case2"])));
}

#[test]
fn files_of_others_are_not_replaced() {
    let folder = folder();
    for name in ["cases.csv", "raters.csv", "summary.json", "cases/case2.json"] {
        let path = folder.path().join("out").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "of the user").unwrap();
        for flags in [&[][..], &["--overwrite"]] {
            let output = evaluate(&folder, &[&["--out", "out", "--fast", "--samples", "4"], flags].concat());
            assert_eq!(output.status.code(), Some(2), "{name}: {}", told(&output));
            assert!(told(&output).contains("does not list it"), "{}", told(&output));
            assert_eq!(std::fs::read(&path).unwrap(), b"of the user");
        }
        std::fs::remove_file(&path).unwrap();
    }
    // Ours are, even when they are damaged.
    let evaluate = || evaluate(&folder, &["--out", "out", "--fast", "--samples", "4"]);
    assert!(evaluate().status.success());
    std::fs::write(folder.path().join("out/summary.json"), "").unwrap();
    assert!(evaluate().status.success());
}
