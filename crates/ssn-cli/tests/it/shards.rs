//! `ssn evaluate` and `ssn prepare brats` in shards: what they say, and that the files are those of one process.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ssn_eval::{About, Predictions};
use ssn_io::{Geometry, Image, Limits, Voxels, write};
use tempfile::TempDir;

use crate::common::{Prediction, model, ssn, told};

const CASES: [&str; 5] = ["case1", "case2", "case3", "case10", "case11"];

/// A dataset `set/` of five pictures with two raters, and predictions of them.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let about = About {
        model: model(),
        seed: 0,
        dataset: "set".to_owned(),
        split: "all".to_owned(),
        images: None,
        labels: None,
        labels_only: false,
    };
    let predictions = Predictions::create(&folder.path().join("predictions"), about).unwrap();
    for (number, id) in CASES.into_iter().enumerate() {
        let path = |name: &str| folder.path().join(format!("set/{name}.png"));
        image(&path(&format!("images/{id}")), [1, 1, 8, 8], |i| (i * 11 % 200) as u8);
        image(&path(&format!("labels/{id}_0")), [1, 1, 8, 8], |i| u8::from(i < 20 + number));
        image(&path(&format!("labels/{id}_1")), [1, 1, 8, 8], |i| u8::from(i < 10 + 2 * number));
        Prediction::picture(id, number as u64).write(&predictions.distribution_path(id));
    }
    folder
}

fn image(path: &Path, shape: [usize; 4], value: impl Fn(usize) -> u8) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let voxels = Voxels::U8((0..shape.iter().product()).map(value).collect());
    write(path, &Image::new(voxels, shape, Geometry::default(), &Limits::default()).unwrap()).unwrap();
}

fn evaluate(folder: &TempDir, arguments: &[&str]) -> Output {
    ssn(folder, &[&["evaluate", "predictions", "--samples", "20", "--quiet"], arguments].concat())
}

/// Every file below a folder with its bytes.
fn tree(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(tree(&path).into_iter().map(|(file, bytes)| (path.join(file), bytes))),
            false => _ = files.insert(path.clone(), std::fs::read(&path).unwrap()),
        }
    }
    // The list of our own files is in the order in which they were begun.
    files.remove(&folder.join(ssn_io::OWN_FILES));
    files.into_iter().map(|(path, bytes)| (path.strip_prefix(folder).unwrap().to_owned(), bytes)).collect()
}

#[test]
fn the_last_shard_writes_the_table() {
    let folder = folder();
    let whole = evaluate(&folder, &["--out", "whole"]);
    let shard = |shard: &str| evaluate(&folder, &["--out", "shards", "--shard", shard]);
    assert_eq!(told(&shard("2/3")), "exit 0\n1 of 3 shards is done; the last one writes the table\n");
    assert_eq!(told(&shard("1/3")), "exit 0\n2 of 3 shards are done; the last one writes the table\n");
    let json = evaluate(&folder, &["--out", "shards", "--shard", "2/3", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json, serde_json::json!({ "shards": { "done": 2, "of": 3 } }));
    assert!(!folder.path().join("shards/cases.csv").exists());
    assert_eq!(told(&shard("3/3")), told(&whole).replace("whole/", "shards/"));
    let files = |name: &str| tree(&folder.path().join(name));
    assert!(files("shards") == files("whole"));

    // Other settings: nothing of what is there counts, and nothing of it is lost until all is scored anew.
    let other = |more: &[&str]| {
        evaluate(&folder, &[&["--out", "shards", "--seed", "7", "--overwrite", "--shard"], more].concat())
    };
    assert!(told(&evaluate(&folder, &["--out", "shards", "--seed", "7", "--shard", "1/2"])).contains("seed"));
    assert_eq!(told(&other(&["1/2"])), "exit 0\n1 of 2 shards is done; the last one writes the table\n");
    assert_eq!(files("shards")[Path::new("cases.csv")], files("whole")[Path::new("cases.csv")]);
    assert!(told(&other(&["2/2"])).contains("scores of each case"));
    evaluate(&folder, &["--out", "seven", "--seed", "7"]);
    assert!(files("shards") == files("seven"));
    // The whole command has the whole table.
    let again = evaluate(&folder, &["--out", "shards", "--overwrite"]);
    assert_eq!(told(&again), told(&whole).replace("whole/", "shards/"));
    assert!(files("shards") == files("whole"));
}

#[test]
fn labels_that_were_corrected_wait_for_their_shard() {
    let folder = folder();
    let shard = |shard: &str| told(&evaluate(&folder, &["--shard", shard]));
    shard("1/2");
    image(&folder.path().join("set/labels/case1_0.png"), [1, 1, 8, 8], |i| u8::from(i < 33));
    assert_eq!(shard("2/2"), "exit 0\n1 of 2 shards is done; the last one writes the table\n");
    let last = shard("1/2");
    assert_eq!(last, told(&evaluate(&folder, &["--overwrite"])));
}

#[test]
fn launched_processes_are_shards() {
    let folder = folder();
    let whole = evaluate(&folder, &["--out", "whole"]);
    let launched = |rank: &str, names: [&str; 2], more: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_ssn"))
            .args(["evaluate", "predictions", "--samples", "20", "--out", "shards"])
            .args(more)
            .current_dir(folder.path())
            .envs([("COLUMNS", "100"), ("NO_COLOR", "1"), (names[0], rank), (names[1], "3")])
            .output()
            .unwrap()
    };
    let said = told(&launched("2", ["PMI_RANK", "PMI_SIZE"], &[]));
    assert_eq!(
        said,
        "exit 0\n1 of 3 shards is done; the last one writes the table\n\
         this is process 3 of the 3 that were launched and works on shard 3/3; --shard 1/1 would be all\n"
    );
    let said = told(&launched("0", ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"], &["-q"]));
    assert_eq!(said, "exit 0\n2 of 3 shards are done; the last one writes the table\n");
    let last = launched("1", ["SLURM_PROCID", "SLURM_STEP_NUM_TASKS"], &["-q"]);
    assert_eq!(told(&last), told(&whole).replace("whole/", "shards/"));
    assert!(tree(&folder.path().join("shards")) == tree(&folder.path().join("whole")));
}

#[test]
fn shards_at_once() {
    let folder = folder();
    let whole = evaluate(&folder, &["--out", "whole"]);
    let children = [1, 2, 3, 4].map(|number| {
        Command::new(env!("CARGO_BIN_EXE_ssn"))
            .args(["evaluate", "predictions", "--samples", "20", "-q", "--out", "shards"])
            .args(["--shard", &format!("{number}/4")])
            .current_dir(folder.path())
            .envs([("COLUMNS", "100"), ("NO_COLOR", "1")])
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap()
    });
    let said = children.map(|child| told(&child.wait_with_output().unwrap()));
    assert!(said.iter().all(|said| said.starts_with("exit 0\n")), "{said:?}");
    assert!(said.contains(&told(&whole).replace("whole/", "shards/")), "{said:?}");
    assert!(tree(&folder.path().join("shards")) == tree(&folder.path().join("whole")));
}

#[test]
fn what_is_no_shard_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let said = ["0/4", "5/4", "x"].map(|wrong| told(&evaluate(&folder, &["--shard", wrong])));
    let prepared = told(&ssn(&folder, &["prepare", "brats", "in", "--shard", "1/0"]));
    insta::assert_snapshot!(format!("{}\n{prepared}", said.join("\n")));
}

#[test]
fn brats_is_prepared_in_shards() {
    let folder = tempfile::tempdir().unwrap();
    for id in ["A_1", "B_1", "C_1", "D_1"] {
        let path = |name: &str| folder.path().join(format!("in/Brats17_{id}/Brats17_{id}_{name}.nii.gz"));
        image(&path("t1"), [1, 6, 6, 6], |i| if i < 200 { 20 + i as u8 } else { 0 });
        image(&path("flair"), [1, 6, 6, 6], |i| (i * 7 % 211) as u8);
        image(&path("seg"), [1, 6, 6, 6], |i| if i < 40 { [1, 2, 4, 0][i / 10] } else { 0 });
    }
    let prepare = |out: &str, more: &[&str]| {
        told(&ssn(&folder, &[&["prepare", "brats", "in", "-q", "--out", out], more].concat()))
    };
    let files = |name: &str| tree(&folder.path().join(name));
    prepare("whole", &[]);
    let said = ["3/3", "1/3", "3/3"].map(|shard| prepare("shards", &["--shard", shard]));
    assert!(!folder.path().join("shards/ssn.toml").exists());
    let last = prepare("shards", &["--shard", "2/3"]);
    insta::assert_snapshot!("brats", format!("{}\n{last}", said.join("\n")));
    assert!(files("shards") == files("whole"));

    prepare("rest", &["--shard", "2/3"]);
    assert!(prepare("rest", &[]).contains("3 cases prepared, 1 kept from before"));
    assert!(files("rest") == files("whole"));
}
