//! A run folder belongs to one process at a time, and survives damage to its checkpoints.

use std::fs;
use std::path::Path;
use std::process::Command;

use ssn_testing::process::{send, wait_for_end};

use crate::common::cut::{comes_true, last_row};
use crate::common::{Images, Lab, assert_same, copy, fails, finishes, generation, outcome, tree, verified};

#[test]
fn a_folder_in_use_is_left_alone_and_free_after_a_kill() {
    let lab = Lab::new(Images::Flat).with(&["training.steps=1000000"]);
    let run = lab.path("run");
    let mut child = lab.begin(&run).spawn().unwrap();
    assert!(comes_true(&mut child, || last_row(&run) >= 8));
    // It stands still, so that all changes are those of others.
    send("STOP", child.id().into());
    let before = tree(&run);
    fails(&mut lab.resume(&run), 2, &["another process is working in this folder", "wait for it"]);
    fails(&mut lab.begin(&run), 2, &["there is a run in this folder"]);
    assert!(tree(&run) == before, "nothing changed");
    send("KILL", child.id().into());
    wait_for_end(child);
    let mut child = lab.resume(&run).spawn().unwrap();
    let reached = last_row(&run);
    assert!(comes_true(&mut child, || last_row(&run) > reached), "{}", wait_for_end(child).stderr);
    send("TERM", child.id().into());
    assert_eq!(wait_for_end(child).code, Some(75));
}

type Damage<'a> = &'a dyn Fn(&Path);

#[test]
fn a_damaged_generation_is_passed_over_and_made_again() {
    let lab = Lab::new(Images::Flat).with(&["training.steps=12", "training.validate_every=0"]);
    let base = lab.uncut("uncut");
    let expected = outcome(&base);
    assert_eq!(verified(&base), [8, 12]);
    let run = lab.path("run");
    let flip = |path: &Path| {
        let mut bytes = fs::read(path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(path, bytes).unwrap();
    };
    let remove = |path: &Path| fs::remove_file(path).unwrap();
    let damages: [(&str, Damage<'_>); 5] = [
        ("model.safetensors", &flip),
        ("optimizer.safetensors", &flip),
        ("progress.json", &flip),
        ("manifest.json", &flip),
        ("optimizer.safetensors", &remove),
    ];
    for (file, damage) in damages {
        copy(&base, &run);
        damage(&generation(&run, 12).join(file));
        let ended = finishes(&mut lab.resume(&run));
        let aside = run.join("checkpoints/damaged-000000012");
        let sentence = format!("passed over a damaged checkpoint, which is now {}", aside.display());
        assert!(ended.stderr.contains(&sentence), "{file}: {}", ended.stderr);
        assert!(ended.stderr.contains("goes on after step 8\n"), "{file}: {}", ended.stderr);
        assert!(aside.is_dir());
        assert_same(&outcome(&run), &expected, file);
    }
}

#[test]
fn a_run_whose_checkpoints_are_all_damaged_is_refused() {
    let lab = Lab::new(Images::Flat).with(&["training.steps=12", "training.validate_every=0"]);
    let run = lab.uncut("run");
    for step in verified(&run) {
        fs::remove_file(generation(&run, step).join("model.safetensors")).unwrap();
    }
    let before = tree(&run);
    let parts = [
        "none of its 2 checkpoints is what was saved",
        "step-000000012/model.safetensors",
        "config.toml --out",
    ];
    fails(&mut lab.resume(&run), 65, &parts);
    assert!(tree(&run) == before, "nothing changed");
    // What the sentence advises.
    let config = run.join("config.toml");
    let again = lab.path("again");
    let mut command = Command::new(env!("CARGO_BIN_EXE_ssn-engine"));
    command.env("OMP_NUM_THREADS", "1").arg("train").arg(config).arg("--out").arg(&again);
    finishes(&mut command);
    let metrics = |run: &Path| fs::read_to_string(run.join("metrics.csv")).unwrap();
    assert_eq!(metrics(&again), metrics(&run));
}
