//! What a user sees of `ssn`: help, errors, exit codes, on a machine without libtorch.

#![allow(clippy::unwrap_used, reason = "the helpers of a test fail like the test")]

use std::path::PathBuf;
use std::process::{Command, Output};

use tempfile::TempDir;

/// `ssn` alone in a folder: no engine beside it.
struct Lonely {
    _folder: TempDir,
    program: PathBuf,
}

impl Lonely {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("ssn");
        std::fs::copy(env!("CARGO_BIN_EXE_ssn"), &program).unwrap();
        Self { _folder: folder, program }
    }

    fn run(&self, arguments: &[&str]) -> Output {
        Command::new(&self.program)
            .args(arguments)
            .env("COLUMNS", "100")
            .env("NO_COLOR", "1")
            .output()
            .unwrap()
    }
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn help_is_for_newcomers() {
    let ssn = Lonely::new();
    insta::assert_snapshot!("help", stdout(&ssn.run(&["--help"])));
    insta::assert_snapshot!("help_toy", stdout(&ssn.run(&["toy", "--help"])));
}

#[test]
fn wrong_arguments_say_what_was_expected() {
    let ssn = Lonely::new();
    for (name, arguments) in [
        ("unknown_verb", vec!["tyo"]),
        ("unknown_option", vec!["toy", "--seedz", "3"]),
        ("no_seeds", vec!["toy", "--seeds", "0"]),
        ("negative_rate", vec!["toy", "--learning-rate=-1"]),
    ] {
        let output = ssn.run(&arguments);
        assert_eq!(output.status.code(), Some(2), "{name}");
        insta::assert_snapshot!(name, stderr(&output));
    }
}

#[test]
fn a_missing_engine_is_a_sentence() {
    let output = Lonely::new().run(&["toy"]);
    assert_eq!(output.status.code(), Some(69));
    insta::assert_snapshot!("missing_engine", stderr(&output));
}

#[test]
fn info_works_without_libtorch() {
    let ssn = Lonely::new();
    let output = ssn.run(&["info", "--json"]);
    assert!(output.status.success());
    let info: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(info["version"], env!("CARGO_PKG_VERSION"));
    assert!(info["engine"].is_null() && info["libtorch"]["folder"].is_null());
    assert!(info["processor"]["cores"].as_u64().unwrap() >= 1);
    assert!(!info["cuda"]["lacks"].as_array().unwrap().is_empty());

    let text = stdout(&ssn.run(&["info"]));
    assert!(text.contains("libtorch   not found (run `cargo xtask setup`)"), "{text}");
}
