//! Numbers that are not finite: no step with them is applied, the cases are named, and the run can be saved.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ssn_io::{Limits, Voxels, read, write};
use ssn_testing::process::run_to_end;

use crate::common::cut::{Chance, cut, last_row};
use crate::common::{Images, Lab, assert_same, copy, fails, finishes, names, outcome, verified};

/// Finite, so that it can be read, and too large to be squared.
const HUGE: f32 = 1e38;

/// A training on the raw values of volumes.
fn lab() -> Lab {
    // The energy loss is bounded, so that some of its gradients survive values of any size.
    Lab::new(Images::Volumes).with(&["data.normalization={ kind = \"none\" }", "loss.kind=likelihood"])
}

fn image(lab: &Lab, id: &str) -> PathBuf {
    lab.data().join(format!("images/{id}.nii.gz"))
}

fn change(lab: &Lab, id: &str, change: impl FnOnce(&mut [f32])) {
    let path = image(lab, id);
    let mut image = read(&path, &Limits::default()).unwrap();
    let Voxels::F32(voxels) = &mut image.voxels else { panic!("{:?}", image.voxels) };
    change(voxels);
    write(&path, &image).unwrap();
}

/// Puts a value into all voxels of a case.
fn poison(lab: &Lab, id: &str, value: f32) {
    change(lab, id, |voxels| voxels.fill(value));
}

/// The cases of a part of the run's split.
fn cases(run: &Path, part: &str) -> Vec<String> {
    let split: toml::Table = fs::read_to_string(run.join("split.toml")).unwrap().parse().unwrap();
    let ids = split[part].as_array().unwrap();
    ids.iter().map(|id| id.as_str().unwrap().to_owned()).collect()
}

/// What the incident files of a run say: their steps, and the cases of each with its number of bad values.
fn incidents(run: &Path) -> Vec<(u64, Vec<String>)> {
    let folder = run.join("incidents");
    let mut names = names(&folder);
    names.sort();
    let read = |name: &String| {
        let incident: serde_json::Value =
            serde_json::from_slice(&fs::read(folder.join(name)).unwrap()).unwrap();
        let cases = incident["cases"].as_array().unwrap().iter();
        let ids = cases.map(|case| case["id"].as_str().unwrap().to_owned());
        (incident["step"].as_u64().unwrap(), ids.collect())
    };
    names.iter().map(read).collect()
}

#[test]
fn a_value_that_is_not_a_number_is_refused_with_its_case() {
    let lab = lab();
    for number in 0..8 {
        change(&lab, &format!("synthetic-{number:05}"), |voxels| voxels[2000] = f32::NAN);
    }
    let parts = ["case synthetic-0000", "1 values of the channel \"image\" are not finite", "replace them"];
    fails(&mut lab.begin(&lab.path("run")), 65, &parts);
}

#[test]
fn steps_that_are_not_finite_are_left_out_and_told() {
    let lab = lab().with(&["training.steps=12"]);
    let healthy = lab.uncut("healthy");
    let id = cases(&healthy, "train").remove(0);
    poison(&lab, &id, HUGE);
    let run = lab.path("run");
    let ended = finishes(&mut lab.begin(&run));
    let told = incidents(&run);
    assert!(!told.is_empty());
    for (step, cases) in told {
        assert!(cases.contains(&id), "step {step} without {id}: {cases:?}");
        let sentence = format!("in step {step} is not finite; the step was not applied; see ");
        let file = run.join(format!("incidents/step-{step:09}.json"));
        assert!(ended.stderr.contains(&(sentence + file.to_str().unwrap())), "{}", ended.stderr);
    }
}

/// Rows of which no step was applied are empty; incidents are counted across cuts.
#[test]
fn a_run_with_incidents_can_be_cut_anywhere() {
    let lab = lab().with(&["training.log_every=1", "training.steps=24"]);
    let healthy = lab.uncut("healthy");
    for id in cases(&healthy, "train").iter().skip(1) {
        poison(&lab, id, HUGE);
    }
    let run = lab.path("uncut");
    let code = run_to_end(&mut lab.begin(&run)).code;
    let told = incidents(&run);
    assert!(told.len() > 5, "{told:?}");
    let text = fs::read_to_string(run.join("metrics.csv")).unwrap();
    assert!(text.contains(",,,,,,,,"), "{text}");
    let mut chance = Chance::new(9);
    for (cut_run, signal) in ["TERM", "KILL", "TERM", "KILL"].into_iter().enumerate() {
        let other = lab.path(&format!("cut-{cut_run}"));
        let step = 1 + chance.below(last_row(&run));
        cut(&mut lab.begin(&other), signal, Duration::ZERO, || last_row(&other) >= step);
        assert_eq!(run_to_end(&mut lab.resume(&other)).code, code, "SIG{signal} after step {step}");
        assert_eq!(incidents(&other), told, "SIG{signal} after step {step}");
        let metrics = fs::read_to_string(other.join("metrics.csv")).unwrap();
        assert_eq!(metrics, text, "SIG{signal} after step {step}");
    }
}

#[test]
fn ten_steps_in_a_row_end_the_run_before_them() {
    let lab = lab();
    let expected = outcome(&lab.uncut("uncut"));
    let run = lab.path("run");
    cut(&mut lab.begin(&run), "TERM", Duration::ZERO, || last_row(&run) >= 8);
    let before = verified(&run);
    let newest = *before.last().unwrap();
    let healthy = lab.path("healthy images");
    copy(&lab.data().join("images"), &healthy);
    for id in cases(&run, "train") {
        poison(&lab, &id, HUGE);
    }
    // Once more, since the next process meets the same batches.
    for _ in 0..2 {
        fails(
            lab.resume(&run).arg("--allow-changed-data"),
            76,
            &["none of them was applied", "incidents", "--resume", "--allow-changed-data", "learning_rate"],
        );
        assert_eq!(verified(&run), before, "the newest checkpoint is from before them");
        let steps: Vec<u64> = incidents(&run).into_iter().map(|(step, _)| step).collect();
        assert!(steps.into_iter().eq(newest + 1..=newest + 10));
    }
    copy(&healthy, &lab.data().join("images"));
    finishes(lab.resume(&run).arg("--allow-changed-data"));
    assert_same(&outcome(&run), &expected, "after the cases were repaired");
}

#[test]
fn a_case_that_cannot_be_validated_on_is_named_and_loses_no_step() {
    // Values are divided by the deviation within the mask, which knows nothing of a corner of the image.
    let lab = Lab::new(Images::Volumes);
    let uncut = lab.uncut("uncut");
    let expected = outcome(&uncut);
    let id = cases(&uncut, "validation").remove(0);
    let healthy = fs::read(image(&lab, &id)).unwrap();
    change(&lab, &id, |voxels| voxels[0] = HUGE);
    let run = lab.path("run");
    let problem = "channel 0 of the image is inf at voxel [0, 0, 0]";
    fails(&mut lab.begin(&run), 65, &[&format!("case {id} of the validation: {problem}")]);
    assert_eq!(*verified(&run).last().unwrap(), 6, "the step of the validation");
    fs::write(image(&lab, &id), healthy).unwrap();
    finishes(lab.resume(&run).arg("--allow-changed-data"));
    assert_same(&outcome(&run), &expected, "after the case was repaired");
}
