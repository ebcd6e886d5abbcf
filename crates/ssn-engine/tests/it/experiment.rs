//! Experiments from their file to their table: done, done again, stopped, and refused.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use sha2::{Digest, Sha256};
use ssn_data::{Synthetic, SyntheticConfig};
use ssn_io::hex::hex;
use ssn_testing::process::Ended;
use tempfile::TempDir;

use crate::common::cut::cut;
use crate::common::{fails, finishes, tree};

/// What all rows share: a network and a run as small as they come.
const CONFIG: &str = r#"
    [config]
    preset = "small"
    [config.data]
    path = "data"
    normalization = { kind = "scale", subtract = 32767.5, divide = 65535 }
    [config.model]
    plan = { width = 2, levels = 2 }
    [config.loss]
    kind = "likelihood"
    samples = 4
    pretrain_steps = 2
    [config.batches]
    batch_size = 2
    [config.training]
    steps = 30
    save_every = 5
    validate_every = 1000
    validation_samples = 2
"#;

const ROWS: &str = r#"
    [[rows]]
    group = "all"
    name = "deterministic"
    set = ["model.head=deterministic"]
    [[rows]]
    group = "all"
    name = "low-rank"
    seeds = [3, 4]
    set = ["model.head={stochastic={rank=2}}"]
"#;

/// A dataset, an experiment file, and room for results.
struct Lab {
    folder: TempDir,
}

impl Lab {
    fn new(head: &str, rows: &str) -> Self {
        let lab = Self { folder: tempfile::tempdir().unwrap() };
        let config = SyntheticConfig { cases: 10, size: [1, 16, 16], ..SyntheticConfig::default() };
        Synthetic::new(config).unwrap().write(&lab.path("data"), &|_| {}).unwrap();
        lab.write("experiment.toml", &format!("title = \"Tiny\"\nsamples = 5\n{head}\n{CONFIG}{rows}"));
        lab
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn run(&self, file: &str, out: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ssn-engine"));
        command.env("OMP_NUM_THREADS", "1").arg("run-experiment").arg(self.path(file));
        command.args(["--workers", "0", "--device", "cpu", "--out"]).arg(self.path(out));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

fn results(out: &Path) -> Value {
    serde_json::from_slice(&fs::read(out.join("results.json")).unwrap()).unwrap()
}

/// The figures of all rows, without times.
fn figures(out: &Path) -> Vec<Value> {
    results(out)["rows"].as_array().unwrap().iter().map(|row| row["figures"].clone()).collect()
}

/// The number of seeds of each row that are in the table.
fn seeds(out: &Path) -> Vec<usize> {
    results(out)["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["seeds"].as_array().unwrap().len())
        .collect()
}

fn trainings(ended: &Ended) -> usize {
    ended.stderr.lines().filter(|line| line.starts_with("$ ssn train ")).count()
}

#[test]
fn an_experiment_gives_a_table_and_does_nothing_twice() {
    let lab = Lab::new("", ROWS);
    let out = lab.path("out");
    let first = finishes(&mut lab.run("experiment.toml", "out"));
    assert_eq!(trainings(&first), 3, "{}", first.stderr);
    let table = fs::read_to_string(out.join("table.md")).unwrap();
    assert!(first.stdout.contains(&table), "{}", first.stdout);
    for part in
        ["# Tiny", "| all   | deterministic |", "| all   | low-rank      |", "GED² of seeds", "## Cost", "30"]
    {
        assert!(table.contains(part), "{part} is missing in:\n{table}");
    }
    assert_eq!(fs::read_to_string(out.join("table.csv")).unwrap().lines().count(), 3);
    let found = results(&out);
    let row = &found["rows"][1];
    assert_eq!(row["cases"], 2);
    // The mean over seeds is that of the runs.
    let mean = |value: &Value| value["figures"]["ged2_5"]["mean"].as_f64().unwrap();
    let runs = row["runs"].as_array().unwrap();
    assert_eq!((runs.len(), runs[0]["seed"].as_u64(), runs[1]["seed"].as_u64()), (2, Some(3), Some(4)));
    assert!((mean(row) - (mean(&runs[0]) + mean(&runs[1])) / 2.0).abs() < 1e-12);
    assert!(mean(&runs[0]) != mean(&runs[1]), "two seeds are two trainings");
    assert!(row["cost"]["parameters"].as_u64() > found["rows"][0]["cost"]["parameters"].as_u64());
    assert_eq!((row["cost"]["samples"].as_u64(), row["steps"].as_u64()), (Some(5), Some(30)));

    let before = tree(&out);
    let again = finishes(&mut lab.run("experiment.toml", "out"));
    assert_eq!(trainings(&again), 0, "{}", again.stderr);
    let after = tree(&out);
    let differ: Vec<_> = after.keys().filter(|name| after.get(*name) != before.get(*name)).collect();
    assert!(differ.is_empty() && after.len() == before.len(), "{differ:?}");

    let other = |arguments: &[&str]| {
        let mut command = lab.run("experiment.toml", "out");
        command.args(arguments);
        command
    };
    fails(&mut other(&["--set", "training.steps=31"]), 2, &["with other settings", "--out"]);
    fails(&mut other(&["--only", "rank 10"]), 2, &["all deterministic, all low-rank"]);
    fails(&mut other(&["--reduced"]), 2, &["no section [reduced]"]);
    lab.write("other.toml", &format!("title = \"Other\"\n{CONFIG}{ROWS}"));
    fails(&mut lab.run("other.toml", "out"), 2, &["another experiment", "--out"]);
}

#[test]
fn rows_and_seeds_can_be_done_one_after_the_other() {
    let lab = Lab::new("", ROWS);
    let out = lab.path("out");
    let did = |options: &[&str]| trainings(&finishes(lab.run("experiment.toml", "out").args(options)));
    assert_eq!(did(&["--only", "DETERM"]), 1);
    assert_eq!(seeds(&out), [1, 0]);
    let table = fs::read_to_string(out.join("table.md")).unwrap();
    assert!(table.contains("0 of 2 |"), "a row that was not asked for is missing:\n{table}");
    assert_eq!(did(&["--only", "low-rank", "--seeds", "1"]), 1);
    assert_eq!(seeds(&out), [1, 1]);
    assert_eq!(did(&[]), 1);
    assert_eq!(seeds(&out), [1, 2]);
    // Asking for less does not make the table smaller.
    let table = fs::read_to_string(out.join("table.md")).unwrap();
    assert_eq!((did(&["--seeds", "1"]), did(&["--only", "deterministic"])), (0, 0));
    assert_eq!(fs::read_to_string(out.join("table.md")).unwrap(), table);
    // Nor does a seed that is gone and not asked for take its row along.
    fs::remove_dir_all(out.join("runs/all-low-rank/seed4")).unwrap();
    assert_eq!(did(&["--only", "deterministic"]), 0);
    assert_eq!(seeds(&out), [1, 1]);
    assert!(fs::read_to_string(out.join("table.md")).unwrap().contains("1 of 2 |"));
}

#[test]
fn a_row_that_fails_does_not_block_the_others() {
    let wrong = "[[rows]]\nname = \"wrong\"\nset = [\"optimizer.learning_rate=1e30\"]\n";
    let lab = Lab::new("", &format!("{wrong}{ROWS}"));
    let out = lab.path("out");
    let ended = fails(&mut lab.run("experiment.toml", "out"), 76, &["wrong, seed 0", "not finite"]);
    assert_eq!(trainings(&ended), 4, "{}", ended.stderr);
    assert!(ended.stderr.contains("\nfailed: wrong, seed 0: "), "{}", ended.stderr);
    assert_eq!(seeds(&out), [0, 1, 2]);
    assert_eq!(results(&out)["failed"].as_array().unwrap().len(), 1);
    let table = fs::read_to_string(out.join("table.md")).unwrap();
    assert!(ended.stdout.contains(&table), "{}", ended.stdout);
    let row = table.lines().find(|line| line.contains("| wrong ")).unwrap();
    assert!(row.contains("– |") && row.ends_with(" 0 of 1 |"), "{row}");
    assert!(table.contains("\n- wrong, seed 0: "), "{table}");
}

#[test]
fn what_all_trainings_would_meet_is_not_tried_with_each() {
    let lab = Lab::new("", ROWS);
    fs::remove_dir_all(lab.path("data")).unwrap();
    let ended = fails(&mut lab.run("experiment.toml", "out"), 65, &["all deterministic, seed 0", "data"]);
    assert_eq!((trainings(&ended), ended.stdout.as_str()), (2, ""), "{}", ended.stderr);
}

#[test]
fn an_experiment_that_was_stopped_goes_on() {
    let lab = Lab::new("", ROWS);
    // Long enough for a signal to come within a training on a machine that is busy.
    let text = fs::read_to_string(lab.path("experiment.toml")).unwrap();
    lab.write("experiment.toml", &text.replace("steps = 30", "steps = 150"));
    // Older checkpoints are removed, so any of them may be the one that is seen.
    let saved = |run: PathBuf| fs::read_dir(run).is_ok_and(|mut entries| entries.next().is_some());
    finishes(&mut lab.run("experiment.toml", "uncut"));
    for (signal, code) in [("INT", Some(75)), ("KILL", None)] {
        let out = format!("cut-{signal}");
        let run = lab.path(&out).join("runs/all-low-rank/seed3/checkpoints");
        let ended = cut(&mut lab.run("experiment.toml", &out), signal, Duration::ZERO, || saved(run.clone()));
        assert_eq!(ended.code, code, "{}", ended.stderr);
        if signal == "INT" {
            assert!(
                ended.stderr.ends_with("error: stopped on request; the same command goes on\n"),
                "{}",
                ended.stderr
            );
        }
        // A stop leaves a table of what is finished, and a kill none.
        assert_eq!(lab.path(&out).join("table.md").exists(), signal == "INT");
        let rest = finishes(&mut lab.run("experiment.toml", &out));
        // The first row was finished, the second is resumed and done with its other seed.
        assert_eq!(trainings(&rest), 2, "{}", rest.stderr);
        assert!(rest.stderr.contains("$ ssn train --resume "), "{}", rest.stderr);
        assert_eq!(figures(&lab.path(&out)), figures(&lab.path("uncut")));
    }
    // Rows that were finished before stay in the table of an experiment that is stopped again.
    fs::remove_dir_all(lab.path("uncut/runs/all-deterministic")).unwrap();
    let run = lab.path("uncut/runs/all-deterministic/seed0/checkpoints");
    let ended = cut(&mut lab.run("experiment.toml", "uncut"), "INT", Duration::ZERO, || saved(run.clone()));
    assert_eq!(ended.code, Some(75), "{}", ended.stderr);
    assert_eq!(seeds(&lab.path("uncut")), [0, 2]);
}

#[test]
fn a_run_that_was_removed_is_trained_predicted_and_measured_anew() {
    let lab = Lab::new("", "[[rows]]\nname = \"a\"\n");
    let out = lab.path("out");
    finishes(&mut lab.run("experiment.toml", "out"));
    let (before, figures_before) = (results(&out), figures(&out));
    fs::remove_dir_all(out.join("runs/a/seed0")).unwrap();
    fs::write(out.join("predictions/a/seed0/old"), "").unwrap();
    let again = finishes(&mut lab.run("experiment.toml", "out"));
    assert_eq!(trainings(&again), 1, "{}", again.stderr);
    assert!(again.stderr.contains("$ ssn predict "), "{}", again.stderr);
    assert!(!out.join("predictions/a/seed0/old").exists(), "the old predictions are still there");
    // The seed is the same, and so is what comes of it; steps are not counted twice.
    assert_eq!(figures(&out), figures_before);
    let steps = |results: &Value| results["rows"][0]["runs"][0]["measured"]["measured_steps"].clone();
    assert_eq!(steps(&results(&out)), steps(&before));
}

#[test]
fn an_experiment_may_grow_but_not_change() {
    let file = |samples: usize, rows: &str| format!("title = \"Tiny\"\nsamples = {samples}\n{CONFIG}{rows}");
    let row = |name: &str, more: &str| format!("[[rows]]\nname = \"{name}\"\n{more}\n");
    let lab = Lab::new("", &row("a", ""));
    let edit = |text: &str| lab.write("experiment.toml", text);
    let run = || lab.run("experiment.toml", "out");
    assert_eq!(trainings(&finishes(&mut run())), 1);

    // A comment, another title, a seed and a row.
    let grown = file(5, &format!("{}{}", row("a", "seeds = [0, 1]"), row("b", "")));
    edit(&format!("# a comment\n{}", grown.replace("Tiny", "Small")));
    assert_eq!(trainings(&finishes(&mut run())), 2);
    assert_eq!(seeds(&lab.path("out")), [2, 1]);

    // Another number of samples, another config, other settings of a row.
    edit(&grown.replace("samples = 5", "samples = 6"));
    fails(&mut run(), 2, &["with other settings", "samples differ", "--out"]);
    edit(&grown.replace("samples = 5", "samples = 5\ncheckpoint = \"best\""));
    fails(&mut run(), 2, &["with other settings", "checkpoint differ", "--out"]);
    edit(&grown.replace("width = 2", "width = 3"));
    fails(&mut run(), 2, &["with other settings", "[config] differ", "--out"]);
    let changed = row("b", "set = [\"training.steps=31\"]");
    edit(&file(5, &format!("{}{changed}", row("a", "seeds = [0, 1]"))));
    fails(&mut run(), 2, &["the row \"b\" was trained with other settings", "out/runs/b", "--out"]);
    // Folders from before there was a choice have the last checkpoint.
    let mark = fs::read_to_string(lab.path("out/experiment.toml")).unwrap();
    assert!(mark.contains("checkpoint = \"last\"\n"), "{mark}");
    lab.write("out/experiment.toml", &mark.replace("checkpoint = \"last\"\n", ""));
    // A row that is left out for a while is not forgotten.
    edit(&file(5, &row("a", "")));
    assert_eq!(trainings(&finishes(&mut run())), 0);
    edit(&file(5, &changed));
    fails(&mut run(), 2, &["the row \"b\" was trained with other settings"]);
    // The advice helps.
    fs::remove_dir_all(lab.path("out/runs/b")).unwrap();
    assert_eq!(trainings(&finishes(&mut run())), 1);
    assert_eq!(results(&lab.path("out"))["rows"][0]["steps"], 31);
}

#[test]
fn networks_are_measured_apart_from_predictions() {
    let lab = Lab::new("folds = 2", "[[rows]]\nname = \"a\"\n");
    finishes(&mut lab.run("experiment.toml", "out"));
    let path = lab.path("out/records/a/seed0-fold1.json");
    let record = || -> Value { serde_json::from_slice(&fs::read(&path).unwrap()).unwrap() };
    let mut forgotten = record();
    (forgotten["network_seconds"], forgotten["drawing"]) = (Value::Null, Value::Null);
    fs::write(&path, forgotten.to_string()).unwrap();
    let again = finishes(&mut lab.run("experiment.toml", "out"));
    assert!(!again.stderr.contains("$ ssn predict "), "{}", again.stderr);
    assert!(record()["network_seconds"].as_f64().unwrap() > 0.0, "{}", record());
}

#[test]
fn folds_are_pooled() {
    let lab = Lab::new("folds = 3", "[[rows]]\nname = \"a\"\nset = [\"model.head={stochastic={rank=1}}\"]\n");
    let ended = finishes(&mut lab.run("experiment.toml", "out"));
    assert_eq!(trainings(&ended), 3, "{}", ended.stderr);
    let found = results(&lab.path("out"));
    let row = &found["rows"][0];
    assert_eq!((row["cases"].as_u64(), row["figures"]["ged2_5"]["values"].as_u64()), (Some(10), Some(10)));
    let runs = row["runs"].as_array().unwrap();
    let cases: u64 = runs.iter().map(|run| run["cases"].as_u64().unwrap()).sum();
    assert_eq!((runs.len(), cases, runs[2]["fold"].as_u64()), (3, 10, Some(2)));
    assert!(fs::read_to_string(lab.path("out/table.md")).unwrap().contains("10 cases in 3 folds"));
}

#[test]
fn the_reduced_version_makes_its_images_up() {
    let reduced =
        "[reduced]\nset = [\"training.steps=5\"]\nsamples = 3\nseeds = 1\ncases = 10\nsize = [1, 16, 16]\n";
    let lab = Lab::new("", &format!("{ROWS}{reduced}"));
    fs::remove_dir_all(lab.path("data")).unwrap();
    let ended = finishes(lab.run("experiment.toml", "out").arg("--reduced"));
    assert_eq!(trainings(&ended), 2, "{}", ended.stderr);
    assert!(lab.path("out/data/images").is_dir());
    let found = results(&lab.path("out"));
    assert_eq!(
        (&found["samples"], &found["title"]),
        (&3.into(), &"Tiny (reduced, on synthetic images)".into())
    );
    fails(&mut lab.run("experiment.toml", "full"), 65, &["data"]);
}

#[test]
fn the_toy_problem_is_an_experiment() {
    let lab = Lab::new("", ROWS);
    lab.write(
        "toy.toml",
        "title = \"Toy\"\n[toy]\nsteps = 20\npretrain = 5\nsamples = 5\neval_samples = 10\n",
    );
    finishes(&mut lab.run("toy.toml", "toy"));
    assert!(lab.path("toy/toy.json").is_file() && lab.path("toy/experiment.toml").is_file());
    let again = finishes(&mut lab.run("toy.toml", "toy"));
    assert!(again.stdout.contains("solved already"), "{}", again.stdout);
    fails(lab.run("toy.toml", "toy").args(["--set", "a=1"]), 2, &["leave --data, --set"]);
}

#[test]
fn the_checkpoint_with_the_best_validation_is_scored_if_asked_for() {
    // Validations of small networks go up and down: of several runs, the best of some is not the last.
    let row = r#"
        [[rows]]
        name = "low-rank"
        seeds = [0, 1, 2, 3]
        set = ["training.validate_every=6"]
    "#;
    for (checkpoint, is_best) in [("checkpoint = \"best\"", true), ("", false)] {
        let lab = Lab::new(checkpoint, row);
        let out = lab.path("out");
        finishes(&mut lab.run("experiment.toml", "out"));
        let hash = |seed: u64, step: u64| {
            let run = out.join(format!("runs/low-rank/seed{seed}/checkpoints/step-{step:09}"));
            hex(&Sha256::digest(fs::read(run.join("model.safetensors")).unwrap()))
        };
        let mut earlier = 0;
        for run in results(&out)["rows"][0]["runs"].as_array().unwrap() {
            let best = run["measured"]["best_validation"]["step"].as_u64().unwrap();
            let step = if is_best { best } else { 30 };
            assert_eq!(run["model"], hash(run["seed"].as_u64().unwrap(), step), "{run}");
            earlier += u32::from(best < 30);
        }
        assert!(earlier > 0, "the best was the last in all runs");
        let table = fs::read_to_string(out.join("table.md")).unwrap();
        assert_eq!(table.contains("the checkpoint with the best validation"), is_best, "{table}");
    }
}

#[test]
fn mistakes_are_told_in_one_sentence() {
    let lab = Lab::new("", ROWS);
    let whole = |head: &str, rows: &str| format!("title = \"t\"\n{head}\n{CONFIG}{rows}");
    let row = |line: &str| format!("[[rows]]\nname = \"a\"\n{line}\n");
    for (text, parts) in [
        (whole("sample = 3", ROWS), &["line 2", "unknown field `sample`", "did you mean `samples`?"][..]),
        (whole("samples = 0", ROWS), &["samples is 0"]),
        (whole("folds = 1", ROWS), &["folds is 1"]),
        (whole("", &format!("{ROWS}[reduced]\nsamples = 0\n")), &["reduced.samples is 0"]),
        (whole("checkpoint = \"first\"", ROWS), &["line 2", "first", "`best` or `last`"]),
        (whole("checkpoint = \"best\"\nfolds = 2", ROWS), &["checkpoint is \"best\"", "with folds"]),
        (
            whole("checkpoint = \"best\"", &row("set = [\"training.validate_every=0\"]")),
            &["row \"a\"", "training.validate_every is 0", "checkpoint"],
        ),
        (whole("masks = [\"core\"]", ROWS), &["NAME=CLASS+CLASS"]),
        (whole("", ""), &["there are no [[rows]]"]),
        (format!("title = \"t\"\n{ROWS}"), &["[config] is missing"]),
        (whole("", &format!("{ROWS}[toy]\nseeds = 1\n")), &["[toy] stands beside"]),
        (whole("", &row("seed = 3")), &["unknown field `seed`", "did you mean `seeds`?"]),
        (whole("", &row("seeds = [1, 1]")), &["different numbers"]),
        (whole("", &format!("{}{}", row(""), row(""))), &["two rows are called \"a\""]),
        (whole("", "[[rows]]\nname = \"–\"\n"), &["neither letters nor digits"]),
        (
            whole("", &row("set = [\"training.stepz=3\"]")),
            &["row \"a\"", "--set training.stepz=3", "did you mean `steps`?"],
        ),
        (whole("", &row("set = [\"training.steps\"]")), &["row \"a\"", "expected KEY=VALUE"]),
        (whole("", &row("preset = \"ldic\"")), &["row \"a\"", "ldic"]),
        (
            whole("", "").replace("batch_size = 2", "batchsize = 2") + &row(""),
            &["row \"a\"", "batches", "batchsize"],
        ),
        ("title = [".to_owned(), &["line 1"]),
        ("title = \"t\"\n[toy]\nstepz = 1\n".to_owned(), &["unknown field `stepz`"]),
    ] {
        lab.write("wrong.toml", &text);
        let ended = fails(&mut lab.run("wrong.toml", "out"), 65, parts);
        assert!(ended.stderr.contains("wrong.toml"), "{}", ended.stderr);
        assert!(!lab.path("out").exists(), "{text}");
    }
    fails(&mut lab.run("nowhere.toml", "out"), 65, &["nowhere.toml"]);
}

#[test]
fn rows_with_one_setting_in_several_numbers_are_drawn_over_it() {
    let row = |rank: usize| {
        format!(
            "[[rows]]\nname = \"rank {rank}\"\nseeds = [0, 1]\nset = [\"model.head={{stochastic={{rank={rank}}}}}\"]\n"
        )
    };
    let lab = Lab::new("", &format!("{}{}", row(1), row(3)));
    finishes(&mut lab.run("experiment.toml", "out"));
    for name in ["ged", "dice"] {
        let svg = fs::read_to_string(lab.path(&format!("out/{name}.svg"))).unwrap();
        assert!(svg.contains(">rank</text>") && svg.contains(">3</text>"), "{svg}");
        assert!(lab.path(&format!("out/{name}.png")).is_file());
    }
    // Rows of other names are no series.
    let lab = Lab::new("", "[[rows]]\nname = \"a\"\n[[rows]]\nname = \"rank 2\"\n");
    finishes(&mut lab.run("experiment.toml", "out"));
    assert!(!lab.path("out/ged.svg").exists());
}
