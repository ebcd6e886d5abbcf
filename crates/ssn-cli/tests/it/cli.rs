//! What a user sees of `ssn`: help, errors, exit codes, on a machine without libtorch.

use std::path::PathBuf;
use std::process::{Command, Output};

use ssn_testing::process::write_program;
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
        write_program(&program, &std::fs::read(env!("CARGO_BIN_EXE_ssn")).unwrap());
        Self { _folder: folder, program }
    }

    /// Puts a program in the place of the engine.
    fn put_engine(&self, program: &[u8]) {
        write_program(&self.program.with_file_name("ssn-engine"), program);
    }

    fn script_as_engine(&self, script: &str) {
        self.put_engine(format!("#!/bin/sh\n{script}\n").as_bytes());
    }

    /// A copy of `ssn` that claims to need something else than it does.
    fn copy_as_engine(&self, needed: &[u8], claimed: &[u8]) {
        let mut bytes = std::fs::read(&self.program).unwrap();
        let at = bytes.windows(needed.len()).position(|window| window == needed).unwrap();
        bytes[at..at + needed.len()].copy_from_slice(claimed);
        self.put_engine(&bytes);
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
    assert!(info["cpu"]["cores"].as_u64().unwrap() >= 1);
    assert!(!info["cuda"]["lacks"].as_array().unwrap().is_empty());

    let text = stdout(&ssn.run(&["info"]));
    assert!(text.contains("libtorch   not found (run `cargo xtask setup`)"), "{text}");
}

/// A stand-in for the engine: tells its arguments and ends with a code of its own.
#[test]
fn the_engine_takes_over_arguments_and_exit_code() {
    let ssn = Lonely::new();
    for code in [0, 2, 76] {
        ssn.script_as_engine(&format!("echo \"$@\"\nexit {code}"));
        let output = ssn.run(&["toy", "--seeds", "3", "--quiet"]);
        assert_eq!(output.status.code(), Some(code));
        assert_eq!(stdout(&output), "toy --seeds 3 --quiet\n");
    }
}

#[test]
fn a_missing_library_is_a_sentence() {
    let ssn = Lonely::new();
    ssn.copy_as_engine(b"libgcc_s.so.1\0", b"libtorch_x.so\0");
    let output = ssn.run(&["toy"]);
    assert_eq!(output.status.code(), Some(69));
    let message = stderr(&output);
    assert!(
        message.contains("cannot start: libtorch_x.so is not found; run `cargo xtask setup`"),
        "{message}"
    );
    let info: serde_json::Value = serde_json::from_slice(&ssn.run(&["info", "--json"]).stdout).unwrap();
    assert_eq!(info["libtorch"]["missing"][0], "libtorch_x.so");
}

/// As on a machine that is older than the one where the engine was built.
#[test]
fn a_library_that_is_too_old_is_a_sentence() {
    let ssn = Lonely::new();
    ssn.copy_as_engine(b"GLIBC_2.14\0", b"GLIBC_2.99\0");
    let output = ssn.run(&["toy"]);
    assert_eq!(output.status.code(), Some(69));
    let message = stderr(&output);
    assert!(message.contains("version `GLIBC_2.99' not found"), "{message}");
    assert!(message.trim_end().ends_with("build it again on this machine"), "{message}");
}

#[test]
fn info_asks_the_engine_for_its_cuda_part() {
    let ssn = Lonely::new();
    for (answer, has_part) in
        [(r#"{"cuda_part": true}"#, true), (r#"{"cuda_part": false}"#, false), ("", false)]
    {
        ssn.script_as_engine(&format!("[ \"$*\" = 'info --json' ] && echo '{answer}'"));
        let info: serde_json::Value = serde_json::from_slice(&ssn.run(&["info", "--json"]).stdout).unwrap();
        assert_eq!(info["cuda"]["engine_part"], has_part, "{answer}");
        let lacks = info["cuda"]["lacks"].as_array().unwrap();
        let says =
            |lack: &serde_json::Value| lack.as_str().unwrap().starts_with("the CUDA part of ssn-engine");
        assert_eq!(lacks.iter().any(says), !has_part, "{lacks:?}");
    }
}
