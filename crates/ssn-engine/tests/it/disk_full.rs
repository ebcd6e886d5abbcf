//! A disk that is full ends a run with a sentence; once there is space, it goes on as if nothing had been.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use ssn_testing::process::run_to_end;
use ssn_testing::strace;

use crate::common::{self, Images, Lab, assert_same, copy, fails, finishes, leftovers, outcome, verified};

const TOLD: [&str; 2] = ["cannot write", "what was saved before is still there"];

/// The command, with no file that may grow beyond so many bytes; nothing if that cannot be had.
fn limited(command: &Command, bytes: u64) -> Option<Command> {
    let mut limited = Command::new("prlimit");
    limited.arg(format!("--fsize={bytes}")).arg("--");
    if !Command::new("prlimit").arg("--version").output().is_ok_and(|output| output.status.success()) {
        ssn_testing::skip_without("prlimit");
        return None;
    }
    Some(strace::wrap(limited, command))
}

#[test]
fn a_checkpoint_that_cannot_be_written_leaves_the_last_one() {
    let lab = Lab::new(Images::Flat);
    let (run, expected) = lab.one_step_to_go(5);
    let model = fs::metadata(common::generation(&run, 5).join("optimizer.safetensors")).unwrap().len();
    let Some(mut command) = limited(&lab.resume(&run), model - 1) else { return };
    fails(&mut command, 74, &[&TOLD[..], &["checkpoints/step-000000006"]].concat());
    assert_eq!(verified(&run), [4, 5]);
    assert!(leftovers(&run).is_empty(), "it takes no space: {:?}", leftovers(&run));
    finishes(&mut lab.resume(&run));
    assert_same(&outcome(&run), &expected, "with space again");
}

/// The log has reached the limit long before, and must not end the run.
#[test]
fn half_a_row_of_metrics_is_taken_back() {
    let lab = Lab::new(Images::Flat).with(&["training.log_every=1"]);
    let (run, expected) = lab.one_step_to_go(5);
    let metrics = run.join("metrics.csv");
    let rows = fs::read_to_string(&metrics).unwrap();
    // Without the validation of the fifth step, which is not due any more.
    let kept: u64 = rows.split_inclusive('\n').take(6).map(|row| row.len() as u64).sum();
    let log = fs::metadata(run.join("log.txt")).unwrap().len();
    assert!(log > kept + 10, "the log is at its limit");
    let Some(mut command) = limited(&lab.resume(&run), kept + 10) else { return };
    fails(&mut command, 74, &[&TOLD[..], &["metrics.csv"]].concat());
    assert_eq!(fs::metadata(&metrics).unwrap().len(), kept + 10, "ten bytes of a row");
    assert_eq!(verified(&run), [4, 5]);
    finishes(&mut lab.resume(&run));
    assert_same(&outcome(&run), &expected, "with space again");
}

/// A small disk in memory, for tests that may mount one.
struct Disk(PathBuf);

impl Disk {
    fn new(path: PathBuf, bytes: u64) -> Option<Self> {
        fs::create_dir(&path).unwrap();
        let size = format!("size={bytes}");
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&path).output();
        if !mount.is_ok_and(|output| output.status.success()) {
            ssn_testing::skip("only some users on some systems may mount a disk in memory");
            return None;
        }
        Some(Self(path))
    }

    /// Fills the disk but for so many bytes; gives the file that does.
    fn fill(&self, free: u64) -> PathBuf {
        let path = self.0.join("ballast");
        let mut bytes = vec![0; 1 << 20];
        while fs::write(&path, &bytes).is_err() {
            bytes.truncate(bytes.len() - 4096);
        }
        fs::write(&path, &bytes[free as usize..]).unwrap();
        path
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        Command::new("umount").arg(&self.0).status().unwrap();
    }
}

/// However much space is left: none for the rows of metrics, or none for one of the files of a checkpoint.
#[test]
fn a_full_disk_loses_nothing() {
    let lab = Lab::new(Images::Flat);
    let (base, expected) = lab.one_step_to_go(5);
    let Some(disk) = Disk::new(lab.path("disk"), 256 << 10) else { return };
    let run = disk.0.join("run");
    let mut codes = vec![];
    for pages in [0, 1, 2, 4, 6, 7, 12] {
        copy(&base, &run);
        let ballast = disk.fill(4096 * pages);
        let ended = run_to_end(&mut lab.resume(&run));
        codes.push(ended.code.unwrap());
        if ended.code != Some(0) {
            assert_eq!(ended.code, Some(74), "{pages} pages: {}", ended.stderr);
            assert_eq!(ended.stderr.matches("error: cannot write").count(), 1, "{}", ended.stderr);
        }
        assert!(verified(&run).ends_with(&[5]) || verified(&run).ends_with(&[6]));
        fs::remove_file(ballast).unwrap();
        finishes(&mut lab.resume(&run));
        assert_same(&outcome(&run), &expected, &format!("{pages} pages"));
        fs::remove_dir_all(&run).unwrap();
    }
    eprintln!("exit codes by free pages: {codes:?}");
    assert!(codes.starts_with(&[74]) && codes.ends_with(&[0]));
}

/// Whether a call may fail without ending the run: a line for the user or for the log, or the picture of its curves.
fn is_talk(text: &str) -> bool {
    let is_line = text.starts_with("write(2<") || text.starts_with("write(") && text.contains("log.txt>");
    is_line || text.contains("progress.png")
}

/// Whether a call brings names in the folder of the run to the disk: that of the picture, or of another file.
fn is_of_any_file(text: &str) -> bool {
    text.starts_with("fsync(") && text.contains("/run>")
}

/// Every call that changes a file finds no space, one at a time.
#[test]
fn no_space_at_any_call_is_told_and_loses_nothing() {
    if !strace::is_there() {
        return;
    }
    let lab = Lab::new(Images::Flat);
    let (base, expected) = lab.one_step_to_go(5);
    let run = lab.path("run");
    copy(&base, &run);
    let calls = strace::calls(&lab.resume(&run), &lab.path("trace"));
    let mut seen = vec![];
    for call in common::cut::points(&calls) {
        copy(&base, &run);
        let ended = run_to_end(&mut strace::inject(&lab.resume(&run), call, "error=ENOSPC"));
        let context = format!("{} {}: {}\n{}", call.name, call.nth, call.text, ended.stderr);
        let expected_code = if is_talk(&call.text) { 0 } else { 74 };
        let is_expected =
            ended.code == Some(expected_code) || is_of_any_file(&call.text) && ended.code == Some(0);
        assert!(is_expected, "{:?} {context}", ended.code);
        assert_eq!(ended.stderr.matches("error: ").count(), usize::from(ended.code != Some(0)), "{context}");
        assert!(verified(&run).ends_with(&[5]) || verified(&run).ends_with(&[6]), "{context}");
        goes_on(&lab, &run, &expected, &mut seen, &context);
    }
    eprintln!("{} calls, {} states", calls.len(), seen.len());
}

type Files<K> = std::collections::BTreeMap<K, Vec<u8>>;

/// The run goes on to what is expected; the same files go on in the same way.
fn goes_on(lab: &Lab, run: &Path, expected: &Files<String>, seen: &mut Vec<Files<PathBuf>>, context: &str) {
    let left = common::tree(run);
    if !seen.contains(&left) {
        seen.push(left);
        finishes(&mut lab.resume(run));
        assert_same(&outcome(run), expected, context);
        assert!(leftovers(run).is_empty(), "{context}: {:?}", leftovers(run));
    }
}
