//! `ssn-engine toy`: files, table, JSON, repeatability and refusals, with few steps. The scores at full length are
//! a matter of `ssn toy --seeds 5`.

use std::path::Path;
use std::process::{Command, Output};

fn toy(out: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ssn-engine"))
        .arg("toy")
        .arg("--out")
        .arg(out)
        .args(["--steps", "60", "--pretrain", "20", "--eval-samples", "2000"])
        .args(arguments)
        .output()
        .unwrap()
}

fn json(output: &Output) -> serde_json::Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    value.as_object_mut().unwrap().remove("seconds");
    value
}

#[test]
fn it_writes_what_it_promises() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("toy");
    let output = toy(&out, &[]);
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && table.contains("low-rank") && table.contains("-0.6931"), "{table}");
    assert!(std::fs::read(out.join("toy.png")).unwrap().starts_with(b"\x89PNG"));
    assert!(std::fs::read_to_string(out.join("toy.svg")).unwrap().contains("Low-rank covariance"));
    let numbers: serde_json::Value =
        serde_json::from_slice(&std::fs::read(out.join("toy.json")).unwrap()).unwrap();
    assert_eq!(numbers["models"][1]["model"], "low-rank");
}

#[test]
fn a_seed_repeats_itself_whatever_runs_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let runs = |name: &str, arguments: &[&str]| {
        json(&toy(&folder.path().join(name), &[&["--json"], arguments].concat()))
    };
    let (alone, among) = (runs("a", &["--seed", "4"]), runs("b", &["--seed", "3", "--seeds", "3"]));
    for model in 0..2 {
        let alone = &alone["models"][model]["runs"][0];
        assert_eq!(alone, &among["models"][model]["runs"][1]);
        assert_ne!(alone["log_likelihood"], among["models"][model]["runs"][0]["log_likelihood"]);
    }
    let single = runs("c", &["--seed", "4", "--precision", "f32"]);
    let of = |value: &serde_json::Value| value["models"][1]["runs"][0]["log_likelihood"].as_f64().unwrap();
    assert!((of(&single) - of(&alone)).abs() < 1e-4);
}

#[test]
fn nothing_is_overwritten_unasked() {
    let folder = tempfile::tempdir().unwrap();
    assert!(toy(folder.path(), &[]).status.success());
    let refused = toy(folder.path(), &[]);
    assert_eq!(refused.status.code(), Some(2));
    let message = String::from_utf8(refused.stderr).unwrap();
    assert!(message.contains("exists already") && message.contains("--overwrite"), "{message}");
    assert!(toy(folder.path(), &["--overwrite"]).status.success());
}

#[test]
fn what_a_killed_command_left_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    assert!(toy(folder.path(), &[]).status.success());
    std::fs::remove_file(folder.path().join("toy.json")).unwrap();
    std::fs::write(folder.path().join("toy.svg"), "of the killed one").unwrap();
    assert!(toy(folder.path(), &[]).status.success());
    assert!(std::fs::read_to_string(folder.path().join("toy.svg")).unwrap().contains("Low-rank covariance"));
}

#[test]
fn impossible_requests_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let output = toy(folder.path(), &["--pretrain", "60"]);
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("leaves nothing of --steps 60"), "{message}");

    let output = toy(folder.path(), &["--seed", "18446744073709551615", "--seeds", "2"]);
    assert_eq!(output.status.code(), Some(2), "seeds beyond the last number");

    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let output = toy(&file.join("below"), &[]);
    assert_eq!(output.status.code(), Some(74), "a folder that cannot be made is an I/O error");
}

#[test]
fn a_diverging_training_stops_with_its_own_code() {
    let folder = tempfile::tempdir().unwrap();
    let output = toy(folder.path(), &["--learning-rate", "1e30", "--precision", "f32"]);
    assert_eq!(output.status.code(), Some(76), "{}", String::from_utf8_lossy(&output.stderr));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(
        message.contains("the step was not applied") && message.contains("lower --learning-rate"),
        "{message}"
    );
    assert!(!folder.path().join("toy.svg").exists());

    // The last step may be the one that goes too far.
    let output = toy(folder.path(), &["--steps", "2", "--pretrain", "1", "--learning-rate", "1000"]);
    assert_eq!(output.status.code(), Some(76), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The bars of the project, at the default length of training, in both precisions.
#[test]
fn the_models_reach_their_scores() {
    for precision in ["f64", "f32"] {
        let folder = tempfile::tempdir().unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_ssn-engine"))
            .args(["toy", "--json", "--precision", precision, "--out"])
            .arg(folder.path())
            .output()
            .unwrap();
        let models = &json(&output)["models"];
        let score = |model: usize| models[model]["mean_log_likelihood"].as_f64().unwrap();
        assert!((score(0) + 4.852).abs() < 0.03, "diagonal, {precision}: {}", score(0));
        assert!(score(1) >= -0.72, "low-rank, {precision}: {}", score(1));
    }
}
