//! Datasets as new users bring them, from `ssn init` to a report, or to the sentence that says how.

use std::fs;
use std::path::Path;
use std::process::Command;

use ssn_data::{Synthetic, SyntheticConfig};
use ssn_io::{Image, Limits, Voxels, read, write};
use ssn_testing::process::{Ended, run_to_end};
use tempfile::TempDir;

/// A training that takes no time.
const FEWER_STEPS: &str = "--preset small --set training.steps=6 --set loss.pretrain_steps=1 --set loss.likelihood_steps=1 \
                           --set training.validate_every=3 --set model.plan.width=2 --device cpu --workers 1";

/// A folder with pictures of two raters in `set/`.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let config = SyntheticConfig { cases: 12, size: [1, 32, 32], ..SyntheticConfig::default() };
    Synthetic::new(config).unwrap().write(&folder.path().join("set"), &|_| ()).unwrap();
    folder
}

/// Runs a line of the command `ssn`.
fn ssn(folder: &TempDir, line: &str) -> Ended {
    let engine = Path::new(env!("CARGO_BIN_EXE_ssn-engine"));
    let program = engine.with_file_name("ssn");
    assert!(program.is_file(), "`ssn` is not built; run `cargo build -p ssn-cli` first");
    let mut command = Command::new(program);
    command.args(line.split_whitespace()).current_dir(folder.path()).env("OMP_NUM_THREADS", "1");
    run_to_end(&mut command)
}

/// The same, which must end with a code and say some words.
fn says(folder: &TempDir, line: &str, code: i32, words: &[&str]) {
    let ended = ssn(folder, line);
    let said = format!("{}{}", ended.stdout, ended.stderr);
    assert_eq!(ended.code, Some(code), "`ssn {line}`:\n{said}");
    for word in words {
        assert!(said.contains(word), "`ssn {line}` does not say {word:?}:\n{said}");
    }
}

/// From a config to a report.
fn to_report(folder: &TempDir, more: &str) {
    says(folder, &format!("train ssn.toml --out run {FEWER_STEPS} {more}"), 0, &["run"]);
    says(folder, "predict run --device cpu", 0, &["predicted"]);
    says(folder, "evaluate predictions --samples 8", 0, &["GED²", "Samples differ"]);
    says(folder, "report predictions --cases 2", 0, &["report.html"]);
    assert!(folder.path().join("predictions/report/report.html").is_file());
}

/// Changes every label map of the set.
fn change_labels(folder: &TempDir, change: impl Fn(u8) -> u8) {
    for entry in fs::read_dir(folder.path().join("set/labels")).unwrap() {
        let path = entry.unwrap().path();
        let image = read(&path, &Limits::default()).unwrap();
        let labels = image.clone().to_labels().unwrap().data.into_iter().map(&change).collect();
        write(&path, &Image { voxels: Voxels::U8(labels), ..image }).unwrap();
    }
}

#[test]
fn a_folder_above_the_dataset() {
    let folder = folder();
    let parent = tempfile::tempdir_in(folder.path()).unwrap();
    fs::rename(folder.path().join("set"), parent.path().join("set")).unwrap();
    let name = parent.path().file_name().unwrap().to_str().unwrap();
    says(&folder, &format!("init {name}"), 65, &["the dataset is not here but in its folder set"]);
    says(&folder, &format!("init {name}/set"), 0, &["wrote ssn.toml"]);
    to_report(&folder, "");
}

#[test]
fn one_broken_case() {
    let folder = folder();
    fs::write(folder.path().join("set/images/synthetic-00004.png"), b"cut off").unwrap();
    says(&folder, "init set", 0, &["wrote ssn.toml"]);
    says(&folder, "check ssn.toml", 1, &["synthetic-00004", "1 error"]);
    says(&folder, "train ssn.toml --out run --device cpu", 1, &["data.exclude", "--skip-check"]);
    to_report(&folder, "--skip-check");
}

#[test]
fn inverted_masks() {
    let folder = folder();
    change_labels(&folder, |label| if label == 0 { 255 } else { 0 });
    says(&folder, "init set", 0, &["wrote ssn.toml"]);
    says(&folder, "check ssn.toml", 1, &["are the masks inverted?", "set invert_labels = true"]);
    let config = folder.path().join("ssn.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("[data]\n", "[data]\ninvert_labels = true\n")).unwrap();
    says(&folder, "check ssn.toml", 0, &["no problems found"]);
    to_report(&folder, "");
    // A prediction is stored as the dataset stores its labels.
    let predictions = fs::read_dir(folder.path().join("predictions")).unwrap();
    let path = predictions
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|end| end == "png"));
    let labels = read(&path.unwrap(), &Limits::default()).unwrap().to_labels().unwrap().data;
    assert!(labels.iter().all(|label| [0, 255].contains(label)));
    assert_eq!(labels[0], 255, "a corner is background");
}

#[test]
fn a_folder_per_rater() {
    let folder = folder();
    for rater in ["alice", "bob"] {
        let number = usize::from(rater == "bob");
        let to = folder.path().join("set").join(rater);
        fs::create_dir(&to).unwrap();
        for case in 0..12 {
            let name = format!("synthetic-{case:05}");
            fs::rename(
                folder.path().join(format!("set/labels/{name}_{number}.png")),
                to.join(format!("{name}.png")),
            )
            .unwrap();
        }
    }
    fs::remove_dir_all(folder.path().join("set/labels")).unwrap();
    // One rater lacks a case, and one file is of no image.
    fs::rename(folder.path().join("set/bob/synthetic-00007.png"), folder.path().join("set/bob/other.png"))
        .unwrap();
    says(
        &folder,
        "init set",
        0,
        &["a folder of images and one per rater", "bob ", "left out: 1 file", "wrote ssn.toml"],
    );
    let missing = [
        "synthetic-00007: there are no labels of bob",
        "data.missing_rater",
        "left out: 1 file in bob/ (other.png)",
    ];
    says(&folder, "check ssn.toml", 1, &missing);
    fs::remove_file(folder.path().join("set/bob/other.png")).unwrap();
    says(&folder, "check ssn.toml", 0, &["1 to 2;", "no problems found"]);
    to_report(&folder, "");
    let table = fs::read_to_string(folder.path().join("predictions/evaluation/raters.csv")).unwrap();
    assert!(table.contains("alice") && table.contains("bob"), "{table}");
}
