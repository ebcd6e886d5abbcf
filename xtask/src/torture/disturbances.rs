//! Every verb under kills, on full disks and with little memory: run again undisturbed, it must write what it writes without all that.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use fastrand::Rng;
use ssn_testing::strace::{CHANGING, wrap};

use super::lab::{Ended, Lab, SMALL, difference, end, tree};
use super::{Findings, Kind};
use crate::error::Error;

/// The calls that change files, and those that lock them.
fn calls_to_kill() -> String {
    format!("{CHANGING},flock,fcntl")
}

/// A verb that writes to a folder, how often it is chosen, and whether libtorch works in it, which needs memory of its own.
struct Verb {
    name: &'static str,
    share: usize,
    has_torch: bool,
    words: fn(&Lab, &Path) -> Vec<OsString>,
}

const VERBS: [Verb; 12] = [
    Verb { name: "train", share: 3, has_torch: true, words: train },
    Verb { name: "predict", share: 3, has_torch: true, words: predict },
    Verb { name: "evaluate", share: 3, has_torch: false, words: evaluate },
    Verb { name: "sample", share: 3, has_torch: false, words: sample },
    Verb { name: "report", share: 2, has_torch: false, words: report },
    Verb { name: "view --export", share: 1, has_torch: false, words: view },
    Verb { name: "prepare", share: 2, has_torch: false, words: prepare },
    Verb { name: "init", share: 1, has_torch: false, words: init },
    Verb { name: "export", share: 1, has_torch: true, words: export },
    Verb { name: "toy", share: 1, has_torch: true, words: toy },
    Verb { name: "demo", share: 1, has_torch: true, words: demo },
    Verb { name: "run-experiment", share: 1, has_torch: true, words: experiment },
];

fn words<const N: usize>(words: [&dyn AsRef<std::ffi::OsStr>; N]) -> Vec<OsString> {
    words.iter().map(|word| word.as_ref().to_owned()).collect()
}

fn train(lab: &Lab, out: &Path) -> Vec<OsString> {
    let run = out.join("run");
    let mut all = match run.join("config.toml").exists() {
        true => return words([&"train", &"--resume", &run, &"--device", &"cpu"]),
        false => {
            words([&"train", &"--data", &lab.data(), &"--out", &run, &"--set", &"training.save_every=1"])
        }
    };
    all.extend(SMALL.map(OsString::from));
    all
}

fn predict(lab: &Lab, out: &Path) -> Vec<OsString> {
    words([&"predict", &lab.trained(), &"--out", &out.join("p"), &"--split", &"all", &"--device", &"cpu"])
}

fn evaluate(lab: &Lab, out: &Path) -> Vec<OsString> {
    words([&"evaluate", &lab.predictions(), &"--out", &out.join("e"), &"--samples", &"8"])
}

fn sample(lab: &Lab, out: &Path) -> Vec<OsString> {
    words([&"sample", &lab.predictions(), &"--out", &out.join("s"), &"--samples", &"3", &"--entropy"])
}

fn report(lab: &Lab, out: &Path) -> Vec<OsString> {
    words([&"report", &lab.predictions(), &"--out", &out.join("r")])
}

fn view(lab: &Lab, out: &Path) -> Vec<OsString> {
    words([&"view", &lab.predictions(), &"--export", &out.join("page.html")])
}

fn prepare(lab: &Lab, out: &Path) -> Vec<OsString> {
    words([&"prepare", &"lidc", &lab.data(), &"--out", &out.join("x.cache.safetensors")])
}

fn init(lab: &Lab, out: &Path) -> Vec<OsString> {
    words([&"init", &lab.data(), &"--out", &out.join("ssn.toml")])
}

fn export(lab: &Lab, out: &Path) -> Vec<OsString> {
    words([&"export", &lab.trained(), &"--out", &out.join("model.safetensors")])
}

fn toy(_: &Lab, out: &Path) -> Vec<OsString> {
    words([
        &"toy",
        &"--out",
        &out.join("toy"),
        &"--steps",
        &"10",
        &"--pretrain",
        &"5",
        &"--seeds",
        &"1",
        &"--eval-samples",
        &"100",
    ])
}

fn demo(_: &Lab, out: &Path) -> Vec<OsString> {
    let mut all = words([&"demo", &"--out", &out.join("d"), &"--cases", &"20"]);
    all.extend(SMALL.map(OsString::from));
    all
}

fn experiment(lab: &Lab, out: &Path) -> Vec<OsString> {
    words([&"run-experiment", &lab.experiment(), &"--out", &out.join("x"), &"--device", &"cpu"])
}

/// What a verb comes to undisturbed: its files, and the number of its calls that change some.
struct Reference {
    files: BTreeMap<PathBuf, Vec<u8>>,
    calls: usize,
}

/// Runs verbs undisturbed, each when it is needed first.
struct References<'a> {
    lab: &'a Lab,
    /// Whether calls are counted.
    traces: bool,
    known: BTreeMap<&'static str, Reference>,
}

impl<'a> References<'a> {
    fn new(lab: &'a Lab, traces: bool) -> Self {
        Self { lab, traces, known: BTreeMap::new() }
    }

    fn of(&mut self, verb: &'static Verb) -> Result<&Reference, Error> {
        if !self.known.contains_key(verb.name) {
            let out = self.lab.cleared("out")?;
            let trace = self.lab.path("trace");
            let mut command = self.lab.ssn(&(verb.words)(self.lab, &out));
            if self.traces {
                let mut traced = Command::new("strace");
                traced.args(["-f", "-qq", "-e", &format!("trace={}", calls_to_kill()), "-o"]).arg(&trace);
                command = wrap(traced, &command);
            }
            let ended = end(&mut command)?;
            if ended.code != Some(0) {
                return Err(Error::answer(&format!("ssn {}", verb.name), &ended.said()));
            }
            let files = tree(&out).map_err(Error::io("read", &out))?;
            let calls = if self.traces { calls(&trace)? } else { 0 };
            self.known.insert(verb.name, Reference { files, calls });
        }
        Ok(&self.known[verb.name])
    }
}

/// The calls of the thread that has most of them.
fn calls(trace: &Path) -> Result<usize, Error> {
    let text = fs::read_to_string(trace).map_err(Error::io("read", trace))?;
    let mut calls = BTreeMap::<&str, usize>::new();
    for line in text.lines() {
        *calls.entry(line.split_whitespace().next().unwrap_or_default()).or_default() += 1;
    }
    Ok(calls.into_values().max().unwrap_or(1))
}

fn chosen(rng: &mut Rng, torch: bool) -> &'static Verb {
    let all: Vec<&Verb> = VERBS
        .iter()
        .filter(|verb| torch || !verb.has_torch)
        .flat_map(|verb| vec![verb; verb.share])
        .collect();
    all[rng.usize(..all.len())]
}

/// Runs a verb undisturbed and compares what it writes.
fn again(
    lab: &Lab,
    verb: &Verb,
    out: &Path,
    reference: &Reference,
    what: &str,
    findings: &mut Findings,
) -> Result<(), Error> {
    let ended = end(&mut lab.ssn(&(verb.words)(lab, out)))?;
    // What was killed after its last file was written is there.
    let is_done = ended.code == Some(0) || ended.code == Some(2) && ended.stderr.contains("exists already");
    if ended.hung || ended.has_crashed() {
        note(&ended, &format!("{what}, then undisturbed"), findings);
    } else if !is_done {
        findings.found(Kind::DeadEnd, format!("{what}, then {}", ended.said()));
    } else {
        let files = tree(out).map_err(Error::io("read", out))?;
        if let Some(path) = difference(&files, &reference.files) {
            findings.found(Kind::Lost, format!("{what}: {path} is not what it is undisturbed"));
        }
    }
    Ok(())
}

/// Notes a hang or a crash.
fn note(ended: &Ended, what: &str, findings: &mut Findings) {
    if ended.hung {
        findings.found(Kind::Hang, format!("{what}: {}", ended.said()));
    } else if ended.has_crashed() {
        findings.found(Kind::Crash, format!("{what}: {}", ended.said()));
    }
}

/// Kills verbs at random system calls, up to three times before a run that nothing disturbs.
pub fn kills(lab: &Lab, rng: &mut Rng, until: Instant, findings: &mut Findings) -> Result<(), Error> {
    let traced = end(Command::new("strace").args(["-qq", "-e", "trace=none", "true"]))?;
    if traced.code != Some(0) {
        eprintln!("no kills: processes cannot be traced here");
        return Ok(());
    }
    let mut references = References::new(lab, true);
    while Instant::now() < until {
        let verb = chosen(rng, true);
        let reference = references.of(verb)?;
        let out = lab.cleared("out")?;
        let mut what = format!("ssn {}, killed", verb.name);
        for _ in 0..rng.usize(1..=3) {
            let nth = rng.usize(1..=reference.calls);
            let mut traced = Command::new("strace");
            traced.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={}", calls_to_kill())]);
            traced.args(["-e", &format!("inject={}:signal=KILL:when={nth}", calls_to_kill())]);
            let ended = end(&mut wrap(traced, &lab.ssn(&(verb.words)(lab, &out))))?;
            what += &format!(" at call {nth} of {}", reference.calls);
            note(&ended, &what, findings);
            findings.tried(1);
        }
        again(lab, verb, &out, reference, &what, findings)?;
    }
    Ok(())
}

/// Runs verbs on disks of random sizes, and then with enough space.
pub fn full_disks(lab: &Lab, rng: &mut Rng, until: Instant, findings: &mut Findings) -> Result<(), Error> {
    let mut references = References::new(lab, false);
    if mount(&lab.cleared("out")?, "size=4096").and_then(|()| unmount(&lab.path("out"))).is_err() {
        eprintln!("no full disks: this user may not mount one");
        return Ok(());
    }
    while Instant::now() < until {
        let verb = chosen(rng, true);
        let reference = references.of(verb)?;
        let bytes: usize = reference.files.values().map(Vec::len).sum();
        let out = lab.cleared("out")?;
        let size = 4096 * rng.usize(1..=(bytes + bytes / 4) / 4096 + 8);
        mount(&out, &format!("size={size}"))?;
        let ended = end(&mut lab.ssn(&(verb.words)(lab, &out)))?;
        let what = format!("ssn {} on a disk of {size} bytes", verb.name);
        note(&ended, &what, findings);
        if !matches!(ended.code, Some(0 | 74)) && !ended.hung && !ended.has_crashed() {
            findings
                .found(Kind::Lost, format!("{what} does not say that the disk is full: {}", ended.said()));
        }
        mount(&out, "remount,size=1G")?;
        let compared = again(lab, verb, &out, reference, &what, findings);
        unmount(&out)?;
        compared?;
        findings.tried(1);
    }
    Ok(())
}

fn mount(path: &Path, options: &str) -> Result<(), Error> {
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(path).status();
    match mounted {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(Error::io("mount a disk in memory at", path)(std::io::Error::other("this needs root"))),
        Err(error) => Err(Error::io("mount a disk in memory at", path)(error)),
    }
}

fn unmount(path: &Path) -> Result<(), Error> {
    Command::new("umount").arg(path).status().map(|_| ()).map_err(Error::io("unmount", path))
}

/// Runs verbs without libtorch with random limits of address space, and then without.
pub fn little_memory(lab: &Lab, rng: &mut Rng, until: Instant, findings: &mut Findings) -> Result<(), Error> {
    let mut references = References::new(lab, false);
    while Instant::now() < until {
        let verb = chosen(rng, false);
        let reference = references.of(verb)?;
        let out = lab.cleared("out")?;
        let megabytes = rng.u64(80..800);
        let mut limited = Command::new("prlimit");
        limited.arg(format!("--as={}", megabytes << 20)).arg("--");
        let ended = end(&mut wrap(limited, &lab.ssn(&(verb.words)(lab, &out))))?;
        let what = format!("ssn {} with {megabytes} MiB", verb.name);
        note(&ended, &what, findings);
        let has_sentence = ended.code == Some(0) || ended.stderr.contains("error: ");
        if !has_sentence && !ended.hung && !ended.has_crashed() {
            findings.found(Kind::Crash, format!("{what} says nothing: {}", ended.said()));
        }
        again(lab, verb, &out, reference, &what, findings)?;
        findings.tried(1);
    }
    Ok(())
}
