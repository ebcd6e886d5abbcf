//! Verbs that are killed at any system call of their first thread that changes files: the same command comes to the same
//! files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use ssn_eval::{About, Predictions};
use ssn_testing::strace;
use tempfile::TempDir;

use crate::common::{Prediction, model, picture};

const CASES: [&str; 2] = ["a", "b"];

/// A dataset with two raters, and predictions of it.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (number, id) in CASES.into_iter().enumerate() {
        picture(&folder.path().join(format!("set/images/{id}.png")), |i| (i * 11 % 200) as u8);
        for rater in 0..2 {
            picture(&folder.path().join(format!("set/labels/{id}_{rater}.png")), |i| {
                u8::from(i < 20 + number + rater)
            });
        }
    }
    let (dataset, split) = ("set".to_owned(), "all".to_owned());
    let about =
        About { model: model(), seed: 0, dataset, split, images: None, labels: None, labels_only: false };
    let predictions = Predictions::create(&folder.path().join("predictions"), about).unwrap();
    for (number, id) in CASES.into_iter().enumerate() {
        Prediction::picture(id, number as u64).write(&predictions.distribution_path(id));
    }
    folder
}

fn ssn(folder: &TempDir, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ssn"));
    command.args(words).arg("--quiet").current_dir(folder.path()).env("RAYON_NUM_THREADS", "1");
    command
}

/// Everything below a folder, without the list of our own files, whose order may differ.
fn tree(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(tree(&path)),
            false => _ = files.insert(path.clone(), fs::read(&path).unwrap()),
        }
    }
    files.remove(&folder.join(ssn_io::OWN_FILES));
    files
}

/// Kills a verb at each of its calls, and runs it again.
fn goes_on(words: &[&str]) {
    if !strace::is_there() {
        return;
    }
    let folder = folder();
    let out = folder.path().join("out");
    let renew = || {
        let _ = fs::remove_dir_all(&out);
        fs::create_dir(&out).unwrap();
    };
    renew();
    let calls = strace::calls(&ssn(&folder, words), &folder.path().join("trace"));
    let expected = tree(&out);
    assert!(!expected.is_empty() && calls.len() > 5, "{} calls", calls.len());
    for call in &calls {
        renew();
        let killed = strace::inject(&ssn(&folder, words), call, "signal=KILL").output().unwrap();
        assert_ne!(killed.status.code(), Some(0), "{call:?}");
        let again = ssn(&folder, words).output().unwrap();
        let said = String::from_utf8_lossy(&again.stderr).into_owned();
        // What was killed after its last file was written is there.
        let is_done = again.status.success() || said.contains("exists already");
        assert!(is_done, "{call:?}: {said}");
        assert!(tree(&out) == expected, "{call:?}: {:?}", tree(&out).keys());
    }
}

#[test]
fn evaluate() {
    goes_on(&["evaluate", "predictions", "--out", "out/e", "--samples", "4", "--fast"]);
}

#[test]
fn sample() {
    goes_on(&["sample", "predictions", "--out", "out/s", "--samples", "2", "--entropy"]);
}

#[test]
fn report() {
    goes_on(&["report", "predictions", "--out", "out/r", "--cases", "1"]);
}

#[test]
fn prepare() {
    goes_on(&["prepare", "lidc", "set", "--out", "out/x.cache.safetensors"]);
}

#[test]
fn init() {
    goes_on(&["init", "set", "--out", "out/ssn.toml"]);
}

#[test]
fn exported_page() {
    goes_on(&["view", "predictions", "--export", "out/page.html"]);
}
