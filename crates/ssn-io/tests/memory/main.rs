//! `Limits::untrusted`: no file of at most 1 MB costs more than 64 MB of memory, valid or not. HDF5 is exempt: its library
//! decides.
//!
//! Each file is read, and its values turned into single precision and labels, by a process of its own: the test runs
//! itself again and asks the system for the peak of that process, all of it included. The program itself is a part of that: this
//! one holds no other tests.

#![allow(clippy::unwrap_used, reason = "the helpers of a test fail like the test")]

mod expanding;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use expanding::{Case, SIZE};
use ssn_io::formats::{pickle, torch_file};
use ssn_io::{Array, Limits, Problem, read, read_bytes, read_segments};
use ssn_testing::process::peak_memory;

/// 64 MB in the unit of the system's report.
const ALLOWED_KIB: u64 = 64_000_000 / 1024;
/// Some of the files that are refused here and read with the default limits.
const READ_BY_DEFAULT: [&str; 5] = ["much.nii.gz", "much.nrrd", "much.mha", "much.png", "much-lzw.tif"];
/// What the second process reads: a file, or a folder of files one after the other.
const VARIABLE: &str = "SSN_MEMORY_OF";

#[test]
fn no_small_file_costs_much_where_it_is_not_trusted() {
    if let Some(path) = std::env::var_os(VARIABLE) {
        return read_and_report(Path::new(&path));
    }
    let folder = tempfile::tempdir().unwrap();
    let mut report = vec![];
    let mut wrong = vec![];
    for Case { name, bytes, outcome } in expanding::cases() {
        assert!(bytes.len() <= SIZE, "{name} has {} bytes", bytes.len());
        let path = folder.path().join(&name);
        fs::write(&path, &bytes).unwrap();
        let (peak, said) = cost(&path);
        let trusted = !READ_BY_DEFAULT.contains(&name.as_str()) || read(&path, &Limits::default()).is_ok();
        if peak > ALLOWED_KIB || !said.contains(outcome) || !trusted {
            wrong.push(name.clone());
        }
        report.push(format!("{peak:>8} KiB  {:>7} bytes  {name}: {said}", bytes.len()));
    }
    println!("{}", report.join("\n"));
    assert!(wrong.is_empty(), "{wrong:?} of\n{}", report.join("\n"));
}

#[test]
fn no_attack_costs_much_where_it_is_not_trusted() {
    let attacks = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/attacks");
    for folder in fs::read_dir(attacks).unwrap() {
        let folder = folder.unwrap().path();
        let (peak, said) = cost(&folder);
        assert!(peak <= ALLOWED_KIB, "{}: {peak} KiB, {said}", folder.display());
    }
}

/// The peak of the memory of a process that reads a file, in KiB, and what became of the file.
fn cost(path: &Path) -> (u64, String) {
    let test = "no_small_file_costs_much_where_it_is_not_trusted";
    let mut command = Command::new(std::env::current_exe().unwrap());
    // The backtrace of a panic that is caught would read the symbols of the whole program.
    command.args([test, "--exact", "--nocapture"]).env(VARIABLE, path).env("RUST_BACKTRACE", "0");
    let output = command.output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}: {printed}", path.display());
    let line = printed.lines().find_map(|line| line.split_once("peak ")).unwrap().1;
    let (peak, said) = line.split_once(' ').unwrap();
    (peak.parse().unwrap(), said.to_owned())
}

fn read_and_report(path: &Path) {
    let mut files: Vec<PathBuf> = vec![path.to_owned()];
    if path.is_dir() {
        files = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
    }
    let said: Vec<String> = files.iter().map(|path| use_file(path, &Limits::untrusted())).collect();
    println!("peak {} {}", peak_memory(), said.join("; "));
}

/// Reads a file as its name says and converts its values; says what became of it.
fn use_file(path: &Path, limits: &Limits) -> String {
    let ending = path.extension().unwrap_or_default().to_string_lossy().into_owned();
    let bytes = || read_bytes(path, limits).map_err(|error| error.problem);
    let done = match ending.as_str() {
        "pickle" => bytes().and_then(|bytes| {
            let pickle = pickle::parse(&bytes, limits)?;
            let array = pickle.root().array().transpose()?;
            Ok(array.map_or(0, |array| converted(&array)))
        }),
        "pt" => bytes().and_then(|bytes| {
            let tensors = torch_file::parse(&bytes, limits)?;
            Ok(tensors.iter().map(|(_, array)| converted(array)).sum())
        }),
        _ => read(path, limits)
            .and_then(|image| read_segments(path, limits).map(|_| image))
            .map_err(|error| error.problem)
            .map(|image| {
                let _ = image.to_labels();
                image.to_f32().data.len()
            }),
    };
    match done {
        Ok(values) => format!("read {values} values"),
        Err(problem) => said(&problem),
    }
}

fn converted(array: &Array) -> usize {
    array.voxels.scaled_f32(2.0, 0.0).len()
}

fn said(problem: &Problem) -> String {
    problem.to_string().replace('\n', " ")
}
