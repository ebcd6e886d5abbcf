//! Reading a hostile file with the default limits takes little memory, whatever its header claims.
//!
//! The test runs itself again for each folder of attacks and asks the system for the peak of that process. The program is a
//! part of the peak, so it holds no other tests.

#![allow(clippy::unwrap_used, reason = "the helpers of a test fail like the test")]

use std::fs;
use std::path::Path;
use std::process::Command;

use ssn_io::formats::{pickle, torch_file};
use ssn_io::{Limits, Problem, read, read_bytes, read_segments};
use ssn_testing::process::peak_memory;

/// 64 MB in the unit of the system's report.
const ALLOWED_KIB: u64 = 64_000_000 / 1024;
/// The folder that the second process reads.
const VARIABLE: &str = "SSN_MEMORY_OF";

#[test]
fn attacks_take_little_memory() {
    if let Some(folder) = std::env::var_os(VARIABLE) {
        return read_and_report(Path::new(&folder));
    }
    let attacks = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/attacks");
    for folder in fs::read_dir(attacks).unwrap() {
        let folder = folder.unwrap().path();
        let mut command = Command::new(std::env::current_exe().unwrap());
        // The backtrace of a panic that is caught would read the symbols of the whole program.
        command.args(["attacks_take_little_memory", "--exact", "--nocapture"]);
        let output = command.env(VARIABLE, &folder).env("RUST_BACKTRACE", "0").output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{}: {printed}", folder.display());
        let (peak, said) =
            printed.lines().find_map(|line| line.split_once("peak ")?.1.split_once(' ')).unwrap();
        assert!(peak.parse::<u64>().unwrap() <= ALLOWED_KIB, "{}: {peak} KiB, {said}", folder.display());
    }
}

fn read_and_report(folder: &Path) {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let said: Vec<String> = files.map(|path| outcome(&path)).collect();
    println!("peak {} {}", peak_memory(), said.join("; "));
}

/// Reads a file as its name says and converts its values; returns the outcome.
fn outcome(path: &Path) -> String {
    let limits = &Limits::default();
    let ending = path.extension().unwrap_or_default().to_string_lossy().into_owned();
    let bytes = || read_bytes(path, limits).map_err(|error| error.problem);
    let done: Result<usize, Problem> = match ending.as_str() {
        "pickle" => bytes().and_then(|bytes| {
            let pickle = pickle::parse(&bytes, limits)?;
            let array = pickle.root().array().transpose()?;
            Ok(array.map_or(0, |array| array.voxels.scaled_f32(2.0, 0.0).len()))
        }),
        "pt" => bytes().and_then(|bytes| {
            let tensors = torch_file::parse(&bytes, limits)?;
            Ok(tensors.iter().map(|(_, array)| array.voxels.scaled_f32(2.0, 0.0).len()).sum())
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
        Err(problem) => problem.to_string().replace('\n', " "),
    }
}
