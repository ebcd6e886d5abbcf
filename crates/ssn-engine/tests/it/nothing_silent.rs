//! What once happened without a word: cases that were dropped, parts that were empty, images that were replaced.

use std::fs;
use std::path::Path;
use std::process::Command;

use ssn::{ReportConfig, report};
use ssn_core::Control;
use ssn_eval::{DistributionFile, EvaluateConfig, PredictionKind, Predictions, SampleConfig, evaluate};
use ssn_io::Limits;
use ssn_testing::process::{Ended, run_to_end};

use crate::common::{Images, Lab, fails, finishes};

fn engine(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ssn-engine"));
    command.env("OMP_NUM_THREADS", "1").args(arguments);
    command
}

/// What predicting ended with.
fn predict(arguments: &[&Path]) -> Ended {
    let mut command = engine(&["predict", "--json"]);
    command.args(arguments);
    run_to_end(&mut command)
}

/// The image of a case of the dataset.
fn image(lab: &Lab, number: usize) -> std::path::PathBuf {
    lab.data().join(format!("images/synthetic-0000{number}.png"))
}

#[test]
fn bad_cases_are_left_out_if_that_is_asked_for() {
    let lab = Lab::new(Images::Flat).with(&["training.steps=4", "training.validate_every=0"]);
    fs::write(image(&lab, 2), b"no picture").unwrap();
    let run = lab.path("run");
    let strict = lab.begin(&run);
    let strict: Vec<_> =
        strict.get_args().filter(|word| *word != "--skip-check").map(ToOwned::to_owned).collect();
    let mut command = engine(&[]);
    command.args(strict);
    let refused = fails(&mut command, 1, &["data.exclude", "--skip-check"]);
    assert!(refused.stderr.contains("synthetic-00002"), "{}", refused.stderr);
    assert!(!run.exists());
    let ended = run_to_end(&mut lab.begin(&run));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("left out of training, validation and test: synthetic-00002"),
        "{}",
        ended.stderr
    );
    let config = fs::read_to_string(run.join("config.toml")).unwrap();
    assert!(config.contains("exclude = [\"synthetic-00002\"]"), "{config}");
    finishes(&mut lab.resume(&run));
}

#[test]
fn a_run_notices_that_its_dataset_changed() {
    let lab = Lab::new(Images::Flat).with(&["training.steps=4", "training.validate_every=0"]);
    let run = lab.uncut("run");
    finishes(&mut lab.resume(&run));
    // Every image is that of the next case.
    let images: Vec<_> = (0..8).map(|number| fs::read(image(&lab, number)).unwrap()).collect();
    (0..8).for_each(|number| fs::write(image(&lab, number), &images[(number + 1) % 8]).unwrap());
    let said = ["its dataset is another than when it began (changed: synthetic-", "--allow-changed-data"];
    fails(&mut lab.resume(&run), 2, &said);
    finishes(lab.resume(&run).arg("--allow-changed-data"));
    let log = fs::read_to_string(run.join("log.txt")).unwrap();
    assert!(log.contains("goes on although its dataset is another than when it began"), "{log}");
    finishes(&mut lab.resume(&run));
}

#[test]
fn a_long_run_is_announced() {
    let lab = Lab::new(Images::Flat).with(&["training.steps=4", "training.validate_every=2"]);
    let run = lab.uncut("run");
    let log = fs::read_to_string(run.join("log.txt")).unwrap();
    for words in [
        "trains on the CPU with 1 thread",
        "U-Net of 2 levels, low-rank normal of rank 2",
        "parameters; 4 steps",
        "GED² on the validation set was",
    ] {
        assert!(log.contains(words), "{words} is missing in\n{log}");
    }
}

#[test]
fn without_a_test_part_validation_is_predicted_and_told() {
    let lab = Lab::new(Images::Flat).with(&["training.steps=4", "data.split.ratios=[70,30,0]"]);
    let (run, out) = (lab.uncut("run"), lab.path("out"));
    let ended = predict(&[&run, Path::new("--out"), &out]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("no case is for test, so that those for validation are predicted"),
        "{}",
        ended.stderr
    );
    assert_eq!(Predictions::open(&out).unwrap().about().split, "validation");
    assert!(evaluate(&EvaluateConfig::new(&out), Control::default()).unwrap().evaluation.cases > 0);
}

#[test]
fn images_join_are_shown_and_are_noticed_when_replaced() {
    let lab = Lab::new(Images::Flat).with(&["training.steps=4"]);
    let (run, out, mine) = (lab.uncut("run"), lab.path("out"), lab.path("mine"));
    fs::create_dir(&mine).unwrap();
    for number in 0..2 {
        fs::copy(image(&lab, number), mine.join(format!("patient{number}.png"))).unwrap();
    }
    let [first, second] = [0, 1].map(|number| mine.join(format!("patient{number}.png")));
    let made = |ended: &Ended| {
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let json: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
        json["predicted"].as_u64().unwrap()
    };
    assert_eq!(made(&predict(&[&run, &first, Path::new("--out"), &out])), 1);
    assert_eq!(made(&predict(&[&run, &second, Path::new("--out"), &out])), 1, "another patient joins");
    assert_eq!(made(&predict(&[&run, &second, Path::new("--out"), &out])), 0);
    fs::copy(image(&lab, 5), &second).unwrap();
    let again = predict(&[&run, &second, Path::new("--out"), &out]);
    assert_eq!(made(&again), 1);
    assert!(
        again.stderr.contains("patient1 is predicted again: its image is another than before"),
        "{}",
        again.stderr
    );

    let made = report(&ReportConfig::new(vec![out.clone()]), Control::default()).unwrap();
    let page = fs::read_to_string(&made.report).unwrap();
    for case in ["patient0", "patient1"] {
        assert!(page.contains(case), "{case}");
    }
    assert!(
        page.contains("Image, raters, prediction, entropy and samples of case patient0"),
        "pictures with images"
    );
    assert!(!page.contains("left out"), "the images are found");
}

#[test]
fn with_a_spacing_everything_is_on_the_grid_of_the_image() {
    let lab = Lab::new(Images::Volumes).with(&["training.steps=4", "data.spacing=[2.0,1.5,1.25]"]);
    let (run, out, samples) = (lab.uncut("run"), lab.path("out"), lab.path("samples"));
    let ended = predict(&[&run, Path::new("--out"), &out, Path::new("--probabilities")]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let config = SampleConfig { entropy: true, ..SampleConfig::new(vec![out.clone()], &samples) };
    ssn_eval::sample(&config, Control::default()).unwrap();
    let about = Predictions::open(&out).unwrap().cases().unwrap()[0].header.description.clone();
    let case = &about.case;
    let image = ssn_io::read(&lab.data().join(format!("images/{case}.nii.gz")), &Limits::default()).unwrap();
    assert_eq!(about.network_grid.unwrap().size, [13, 11, 8], "the network saw other voxels");
    for path in [
        samples.join(format!("{case}_sample_0.nii.gz")),
        samples.join(format!("{case}_marginal_entropy.nii.gz")),
        out.join(format!("{case}_prediction.nii.gz")),
        out.join(format!("{case}_prob_maps.nii.gz")),
    ] {
        let found = ssn_io::read(&path, &Limits::default()).unwrap();
        assert_eq!((&found.shape[1..], found.geometry), (&image.shape[1..], image.geometry), "{path:?}");
    }
    let scored = evaluate(&EvaluateConfig::new(&out), Control::default()).unwrap().evaluation;
    assert!(scored.figure("log_likelihood").unwrap().mean.unwrap().is_finite());
    let made = report(&ReportConfig::new(vec![out.clone()]), Control::default()).unwrap();
    assert!(fs::read_to_string(&made.report).unwrap().contains(case.as_str()));
}

#[test]
fn masks_and_volumes_are_no_pictures() {
    let lab = Lab::new(Images::Flat).with(&["training.steps=4"]);
    let (run, out) = (lab.uncut("run"), lab.path("out"));
    let mask = lab.data().join("labels/synthetic-00000_0.png");
    let ended = predict(&[&run, &mask, Path::new("--out"), &out]);
    assert_eq!(ended.code, Some(65));
    assert!(ended.stderr.contains("different values, as a mask has; give the images"), "{}", ended.stderr);
    let named = lab.path("seg_patient.png");
    fs::copy(&mask, &named).unwrap();
    let ended = predict(&[&run, &named, Path::new("--out"), &out]);
    assert!(
        ended.stderr.contains("this is a label map or a mask, but an image is expected"),
        "{}",
        ended.stderr
    );
    let volumes = Lab::new(Images::Volumes);
    let volume = volumes.data().join("images/synthetic-00000.nii.gz");
    let ended = predict(&[&run, &volume, Path::new("--out"), &out]);
    assert_eq!(ended.code, Some(65));
    assert!(ended.stderr.contains("is a volume of 16 slices; give pictures"), "{}", ended.stderr);
}

#[test]
fn folds_are_an_ensemble() {
    let lab = Lab::new(Images::Flat).with(&["training.steps=4", "training.validate_every=0"]);
    let runs = [0, 1, 2].map(|fold| {
        let run = lab.path(&format!("fold{fold}"));
        finishes(lab.begin(&run).args(["--fold", &fold.to_string()]));
        run
    });
    let split = |run: &Path| fs::read_to_string(run.join("split.toml")).unwrap();
    assert_ne!(split(&runs[0]), split(&runs[1]));
    let out = lab.path("out");
    let mut command = engine(&["predict", "--json", "--samples", "10", "--split", "all"]);
    command
        .arg(&runs[0])
        .arg("--ensemble")
        .arg(&runs[1])
        .arg("--ensemble")
        .arg(&runs[2])
        .arg("--out")
        .arg(&out);
    finishes(&mut command);
    let file =
        DistributionFile::read(&out.join("synthetic-00003.ssn.safetensors"), &Limits::default()).unwrap();
    assert_eq!((file.description().kind, file.sample_count()), (PredictionKind::Sampled, 10));
    assert!(file.description().model.name.starts_with("ensemble of fold0, step 4 and fold1"));
    // Sample 4 of the ensemble is sample 1 of its second member.
    let alone = lab.path("alone");
    let mut command = engine(&["predict", "--json", "--split", "all"]);
    finishes(command.arg(&runs[1]).arg("--out").arg(&alone));
    let member =
        DistributionFile::read(&alone.join("synthetic-00003.ssn.safetensors"), &Limits::default()).unwrap();
    let steering = ssn_core::Steering::default();
    let drawn = ssn_eval::SampleSource::new(&member, 0, &steering).unwrap().labels(1..2).unwrap();
    let v = file.distribution().voxels();
    let differing =
        file.samples().unwrap()[4 * v..5 * v].iter().zip(drawn[0].labels()).filter(|(a, b)| a != b).count();
    // The member's own file has its factor in half precision.
    assert!(differing <= v / 50, "{differing} of {v}");
}

#[test]
fn what_is_no_config_says_what_to_do() {
    let lab = Lab::new(Images::Flat);
    let data = lab.data().display().to_string();
    fails(&mut engine(&["train", &data]), 2, &["is a folder", "ssn train --data", "ssn init"]);
    fails(&mut engine(&["train", "nope.toml"]), 2, &["there is no file nope.toml", "ssn init"]);
    let config = lab.path("ssn.toml");
    fs::write(&config, format!("[data]\npath = {data:?}\n")).unwrap();
    let config = config.display().to_string();
    fails(&mut engine(&["train", &config, "--set", "steps=5"]), 65, &["did you mean", "`training.steps`?"]);
    finishes(&mut engine(&["check", &config]));
    fs::write(lab.path("bad.toml"), format!("[data]\npath = {data:?}\n[loss]\nsamples = 0\n")).unwrap();
    fails(&mut engine(&["check", &lab.path("bad.toml").display().to_string()]), 65, &["loss.samples"]);
    let identity = format!("preset = \"lidc\"\n[data]\npath = {data:?}\n[model]\nhead = \"identity\"\n");
    fs::write(lab.path("bad.toml"), identity).unwrap();
    let told = ["model.head is \"identity\" on a network that gives 32 channels for 2 classes"];
    fails(&mut engine(&["check", &lab.path("bad.toml").display().to_string()]), 2, &told);
}
