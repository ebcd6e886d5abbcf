//! Places where parts meet: each test is a wrong result that no part saw by itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use ssn::data::{DeviceChoice, LabelReading};
use ssn::eval::evaluation::OtherTool;
use ssn::eval::{Predictions, SplitChoice};
use ssn::io::{Image, Voxels, read, write};
use ssn::prelude::*;
use ssn::{CheckpointChoice, ErrorKind, ExportConfig, ExportFormat, export};

use crate::lab::{Lab, SHORT, results, train_on};

/// A TorchScript network with batch norm that takes even sizes only.
const TORCHSCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../ssn-nn/tests/golden/backbone.pt");
/// The same with dropout.
const DROPOUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../ssn-nn/tests/golden/dropout.pt");

/// Trains until the network knows the lesions, which takes a second.
fn trained(lab: &Lab, name: &str, settings: &[&str]) -> PathBuf {
    let learning = [
        "training.steps=60",
        "training.validate_every=0",
        "batches.batch_size=4",
        "loss.kind=energy",
        "loss.samples=4",
        "loss.pretrain_steps=40",
        "loss.likelihood_steps=0",
        "model.plan={width=8,levels=3}",
        "optimizer.learning_rate=1e-2",
    ];
    let config = lab.run(name, "small", learning.iter().chain(settings).copied());
    train_on(1, &config, None).unwrap();
    config.out
}

fn predict_to(model: &Path, out: PathBuf, data: &[&Path]) -> ssn::Result<PathBuf> {
    let config = PredictConfig {
        data: data.iter().map(|path| path.to_path_buf()).collect(),
        device: DeviceChoice::Cpu,
        ..PredictConfig::new(model, &out)
    };
    predict(&config, Control::default()).map(|_| out)
}

/// Scores predictions; returns the mean DSC of every class in percent, the number of cases, and the warnings.
fn scored(
    predictions: &Path,
    data: Option<&Path>,
    split: Option<SplitChoice>,
) -> (Vec<f64>, usize, Vec<String>) {
    let warnings = Mutex::new(vec![]);
    let watch = |event: Progress<'_>| {
        if let Progress::Warning(line) = event {
            warnings.lock().unwrap().push(line.to_owned());
        }
    };
    let config = EvaluateConfig {
        samples: 4,
        fast: true,
        data: data.map(Path::to_owned),
        split,
        overwrite: true,
        ..EvaluateConfig::new(predictions)
    };
    let evaluated = evaluate(&config, Control::watched(&watch)).unwrap();
    let dice = |mask: &String| {
        let values: Vec<f64> = evaluated
            .cases
            .iter()
            .flat_map(|case| case.scores.of_mask("dsc", mask).iter().copied().flatten())
            .collect();
        100.0 * values.iter().sum::<f64>() / values.len() as f64
    };
    let masks = &evaluated.cases[0].scores.masks;
    (masks.iter().map(dice).collect(), evaluated.cases.len(), warnings.into_inner().unwrap())
}

/// Copies a folder of pictures or label maps, changing their values.
fn copy(from: &Path, to: &Path, change: impl Fn(u8) -> u8) {
    fs::create_dir_all(to).unwrap();
    for file in fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        let image = read(&file.path(), &ssn::io::Limits::default()).unwrap();
        let Voxels::U8(values) = image.voxels else {
            fs::copy(file.path(), to.join(file.file_name())).unwrap();
            continue;
        };
        let voxels = Voxels::U8(values.into_iter().map(&change).collect());
        write(&to.join(file.file_name()), &Image { voxels, ..image }).unwrap();
    }
}

/// Copies a dataset with other values in its label maps.
fn recoded(lab: &Lab, name: &str, change: impl Fn(u8) -> u8) -> PathBuf {
    let folder = lab.path(name);
    copy(&lab.path("data/images"), &folder.join("images"), |value| value);
    copy(&lab.path("data/labels"), &folder.join("labels"), change);
    folder
}

#[test]
fn predictions_of_named_images_are_scored_with_the_label_values_of_the_run() {
    let lab = Lab::new([1, 32, 32], 3);
    let data = lab.path("data");
    let plain = trained(&lab, "plain", &["data.classes=[\"none\",\"rim\",\"core\"]"]);
    let swapped =
        trained(&lab, "swapped", &["data.label_values=[0,2,1]", "data.classes=[\"none\",\"core\",\"rim\"]"]);
    let reading = |run: &Path, out: &str| {
        let out = predict_to(run, lab.path(out), &[&data]).unwrap();
        (
            scored(&out, None, Some(SplitChoice::All)).0,
            Predictions::open(&out).unwrap().about().labels.clone().unwrap(),
        )
    };
    let (expected, _) = reading(&plain, "of-plain");
    let (found, labels) = reading(&swapped, "of-swapped");
    assert_eq!(
        labels,
        LabelReading { coding: ssn::data::LabelCoding::Values(vec![0, 2, 1]), ..LabelReading::default() }
    );
    // The networks know the same lesions, under other numbers.
    assert!(expected[0] > 40.0 && (found[1] - expected[0]).abs() < 25.0, "{expected:?} {found:?}");
    // A dataset that is named again is read in the same way, and so it is by way of a bundle.
    let out = lab.path("of-swapped");
    assert_eq!(scored(&out, Some(&data), Some(SplitChoice::All)).0, found);
    let bundle = lab.path("swapped.safetensors");
    let config = ExportConfig {
        model: swapped,
        out: Some(bundle.clone()),
        format: ExportFormat::Safetensors,
        checkpoint: CheckpointChoice::Best,
        overwrite: false,
    };
    export(&config).unwrap();
    let bundled = predict_to(&bundle, lab.path("of-bundle"), &[&data]).unwrap();
    assert_eq!(scored(&bundled, None, Some(SplitChoice::All)).0, found);
}

#[test]
fn inverted_masks_stay_inverted() {
    let lab = Lab::new([1, 32, 32], 2);
    let inverted = recoded(&lab, "inverted", |value| 255 - value);
    let config = |name| TrainConfig { data: Some(inverted.clone()), ..lab.run(name, "small", []) };
    let run = trained(&lab, "run", &[]);
    let mut other = config("other");
    other.settings = SHORT
        .iter()
        .copied()
        .chain(["data.invert_labels=true", "loss.likelihood_steps=0"])
        .map(str::to_owned)
        .collect();
    train_on(1, &other, None).unwrap();
    let out = predict_to(&other.out, lab.path("out"), &[&inverted]).unwrap();
    assert!(Predictions::open(&out).unwrap().about().labels.as_ref().unwrap().invert);
    // A run on the usual masks notices that those of another dataset mark what is outside.
    let out = predict_to(&run, lab.path("seen"), &[&lab.path("data")]).unwrap();
    let (dice, _, warnings) = scored(&out, None, Some(SplitChoice::All));
    assert!(dice[0] > 40.0 && warnings.is_empty(), "{dice:?} {warnings:?}");
}

#[test]
fn exchanged_classes_are_a_warning() {
    let lab = Lab::new([1, 32, 32], 3);
    let exchanged = recoded(&lab, "exchanged", |value| [0, 2, 1][usize::from(value)]);
    // The first rater's maps stand for a perfect prediction.
    let other = OtherTool { labels: Some(lab.path("data/labels/{case}_0.png")), ..OtherTool::default() };
    let warnings = Mutex::new(vec![]);
    let watch = |event: Progress<'_>| {
        if let Progress::Warning(line) = event {
            warnings.lock().unwrap().push(line.to_owned());
        }
    };
    let config =
        EvaluateConfig { other, data: Some(exchanged), ..EvaluateConfig::new(lab.path("converted")) };
    let evaluated = evaluate(&config, Control::watched(&watch)).unwrap();
    let warnings = warnings.into_inner().unwrap();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].contains("but would have 79.4 % against the raters' label_2"), "{warnings:?}");
    assert_eq!(evaluated.evaluation.verdict[..2], warnings[..], "the report shows it too");
}

#[test]
fn masks_of_0_and_255_are_read_for_a_bundle_that_does_not_know_them() {
    let lab = Lab::new([1, 32, 32], 2);
    let run = trained(&lab, "run", &[]);
    let out = predict_to(&run, lab.path("out"), &[&lab.path("data")]).unwrap();
    let expected = scored(&out, None, Some(SplitChoice::All)).0;
    // As version 0.2 wrote it.
    let about = out.join("predictions.json");
    let text = fs::read_to_string(&about).unwrap();
    let mut json: serde_json::Value = serde_json::from_str(&text).unwrap();
    json.as_object_mut().unwrap().remove("labels").unwrap();
    fs::write(&about, json.to_string()).unwrap();
    assert_eq!(scored(&out, None, Some(SplitChoice::All)).0, expected);
}

#[test]
fn cases_that_a_model_trained_on_are_not_scored_unasked() {
    let lab = Lab::new([1, 16, 16], 2);
    let config = lab.run("run", "small", SHORT.into_iter().chain(["loss.likelihood_steps=0"]));
    train_on(1, &config, None).unwrap();
    let out = predict_to(&config.out, lab.path("out"), &[&lab.path("data")]).unwrap();
    let (_, cases, warnings) = scored(&out, None, None);
    assert_eq!(cases, 4, "six of ten are for training");
    assert!(warnings.iter().any(|line| line.contains("trained on 6 of the cases")), "{warnings:?}");
    assert_eq!(scored(&out, None, Some(SplitChoice::All)).1, 10);
    // Copies elsewhere are known by their contents, for a bundle too.
    let copies = lab.path("copies");
    copy(&lab.path("data/images"), &copies, |value| value);
    let bundle = lab.path("run.safetensors");
    let config = ExportConfig {
        model: config.out,
        out: Some(bundle.clone()),
        format: ExportFormat::Safetensors,
        checkpoint: CheckpointChoice::Best,
        overwrite: false,
    };
    export(&config).unwrap();
    let out = predict_to(&bundle, lab.path("of-copies"), &[&copies]).unwrap();
    let marked = Predictions::open(&out).unwrap().cases().unwrap();
    assert_eq!(marked.iter().filter(|case| case.is_trained_on()).count(), 6);
}

#[test]
fn an_ensemble_of_folds_refuses_cases_that_a_member_trained_on() {
    let lab = Lab::new([1, 16, 16], 2);
    let fold = |fold: &str| {
        let fold = format!("data.split.fold={fold}");
        let settings = SHORT.into_iter().chain(["loss.likelihood_steps=0", "data.split.folds=3", &fold]);
        let config = lab.run(&fold, "small", settings);
        train_on(1, &config, None).unwrap();
        config.out
    };
    let [first, second] = ["0", "1"].map(fold);
    let ensemble = |name: &str, split| PredictConfig {
        ensemble: vec![second.clone()],
        device: DeviceChoice::Cpu,
        split,
        ..PredictConfig::new(&first, lab.path(name))
    };
    let refused = predict(&ensemble("out", None), Control::default()).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Usage);
    assert!(
        refused.to_string().contains("trained on") && refused.to_string().contains("its own run"),
        "{}",
        refused.to_string()
    );
    assert!(predict(&ensemble("out", Some(SplitChoice::Validation)), Control::default()).is_err());
    predict(&ensemble("all", Some(SplitChoice::All)), Control::default()).unwrap();
    // One fold alone predicts its validation cases, all of them new to it.
    let alone = predict_to(&first, lab.path("alone"), &[]).unwrap();
    assert_eq!(scored(&alone, None, None).2, Vec::<String>::new());
}

#[test]
fn another_image_of_the_same_name_replaces_nothing() {
    let lab = Lab::new([1, 16, 16], 2);
    let config = lab.run("run", "small", SHORT.into_iter().chain(["loss.likelihood_steps=0"]));
    train_on(1, &config, None).unwrap();
    let [first, second] = ["a", "b"].map(|folder| {
        fs::create_dir(lab.path(folder)).unwrap();
        lab.path(folder).join("case.png")
    });
    fs::copy(lab.path("data/images/synthetic-00000.png"), &first).unwrap();
    fs::copy(lab.path("data/images/synthetic-00001.png"), &second).unwrap();
    let out = predict_to(&config.out, lab.path("out"), &[&first]).unwrap();
    let before = fs::read(out.join("case.ssn.safetensors")).unwrap();
    for _ in 0..2 {
        let refused = predict_to(&config.out, out.clone(), &[&second]).unwrap_err();
        assert!(
            refused.to_string().contains("another image that is also called case"),
            "{}",
            refused.to_string()
        );
        assert_eq!(fs::read(out.join("case.ssn.safetensors")).unwrap(), before);
    }
    // An image that changed in its place is predicted again.
    fs::copy(&second, &first).unwrap();
    predict_to(&config.out, out.clone(), &[&first]).unwrap();
    assert_ne!(fs::read(out.join("case.ssn.safetensors")).unwrap(), before);
}

/// Settings of a short run with a TorchScript network.
fn foreign(network: &str) -> Vec<String> {
    let mut settings: Vec<String> = SHORT.map(str::to_owned).to_vec();
    settings.push(format!("model.backbone={{torchscript={network:?},features=6}}"));
    settings.push("loss.likelihood_steps=0".to_owned());
    settings
}

#[test]
fn dropout_of_a_torchscript_network_is_the_same_in_every_run() {
    let lab = Lab::new([1, 16, 16], 2);
    let settings = foreign(DROPOUT);
    let config = |name| lab.run(name, "small", settings.iter().map(String::as_str));
    for name in ["first", "second", "cut"] {
        train_on(1, &config(name), (name == "cut").then_some(2)).unwrap();
    }
    let resume = TrainConfig { device: DeviceChoice::Cpu, ..TrainConfig::resume(lab.path("cut")) };
    train_on(1, &resume, None).unwrap();
    let first = results(&lab.path("first"));
    assert_eq!(first, results(&lab.path("second")));
    assert_eq!(first, results(&lab.path("cut")), "a resumed run");
}

#[test]
fn a_torchscript_network_is_validated_and_predicts_on_sizes_that_it_takes() {
    // It takes even sizes; patches have one, images do not.
    let lab = Lab::new([1, 17, 19], 2);
    let mut settings = foreign(TORCHSCRIPT);
    settings.push("batches.patch.sampler={kind=\"random\",size=[1,12,12]}".to_owned());
    let config = lab.run("run", "small", settings.iter().map(String::as_str));
    train_on(1, &config, None).unwrap();
    predict_to(&config.out, lab.path("out"), &[]).unwrap();
}

#[test]
fn running_statistics_of_a_torchscript_network_are_those_of_all_ranks() {
    let lab = Lab::new([1, 16, 16], 2);
    let settings = foreign(TORCHSCRIPT);
    let config = lab.run(
        "always",
        "small",
        settings.iter().map(String::as_str).chain(["training.sync_batch_norm=always"]),
    );
    let refused = train_on(2, &config, None).unwrap_err();
    assert!(
        refused.to_string().contains("batch norm sees only the items of its rank"),
        "{}",
        refused.to_string()
    );
    let config = lab.run("run", "small", settings.iter().map(String::as_str));
    train_on(2, &config, None).unwrap();
    let log = fs::read_to_string(config.out.join("log.txt")).unwrap();
    assert!(log.contains("batch norm is over each rank's items"), "{log}");
}

#[test]
fn a_validation_that_cannot_be_scored_does_not_end_the_run() {
    let lab = Lab::new([1, 16, 16], 2);
    // Steps of this size make the variances infinite.
    let settings = SHORT.into_iter().chain([
        "training.steps=2",
        "loss.likelihood_steps=0",
        "optimizer.learning_rate=1e15",
        "optimizer.warmup.steps=0",
    ]);
    for ranks in [1, 2] {
        let config = lab.run(&format!("run{ranks}"), "small", settings.clone());
        train_on(ranks, &config, None).unwrap();
        let log = fs::read_to_string(config.out.join("log.txt")).unwrap();
        assert!(log.contains("step 2: no scores: case "), "{log}");
        assert!(log.contains("must be within ± 1e20"), "{log}");
    }
}

#[test]
fn a_relative_torchscript_path_is_kept_as_an_absolute_one() {
    let lab = Lab::new([1, 16, 16], 2);
    let config_folder = lab.path("config");
    fs::create_dir(&config_folder).unwrap();
    fs::copy(TORCHSCRIPT, config_folder.join("net.pt")).unwrap();
    let text = format!(
        "preset = \"small\"\n[data]\npath = {:?}\n[model]\nbackbone = {{ torchscript = \"net.pt\", features = 6 }}\n",
        lab.path("data")
    );
    fs::write(config_folder.join("ssn.toml"), text).unwrap();
    let config = TrainConfig {
        settings: SHORT.into_iter().chain(["loss.likelihood_steps=0"]).map(str::to_owned).collect(),
        device: DeviceChoice::Cpu,
        ..TrainConfig::from_file(config_folder.join("ssn.toml"), lab.path("run"))
    };
    train_on(1, &config, None).unwrap();
    let frozen = fs::read_to_string(lab.path("run/config.toml")).unwrap();
    let path = config_folder.join("net.pt").canonicalize().unwrap();
    assert!(frozen.contains(&format!("torchscript = {path:?}")), "{frozen}");
}

#[test]
fn the_same_name_of_another_model_is_told_apart() {
    let lab = Lab::new([1, 16, 16], 2);
    let config = lab.run("run", "small", SHORT.into_iter().chain(["loss.likelihood_steps=0"]));
    train_on(1, &config, None).unwrap();
    predict_to(&config.out, lab.path("out"), &[]).unwrap();
    fs::remove_dir_all(&config.out).unwrap();
    train_on(1, &TrainConfig { seed: Some(5), ..config.clone() }, None).unwrap();
    let refused = predict_to(&config.out, lab.path("out"), &[]).unwrap_err();
    assert!(refused.to_string().matches("with the SHA-256").count() == 2, "{}", refused.to_string());
}
