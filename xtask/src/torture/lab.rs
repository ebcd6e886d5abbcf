//! Where programs are disturbed: a dataset, a run and its predictions, and commands with an end.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::error::Error;

/// Beyond this a command hangs; all of them take seconds.
const LONGEST: Duration = Duration::from_secs(120);
/// Beyond this the settings of the base take too long.
const BASE: Duration = Duration::from_secs(600);
const GLANCE: Duration = Duration::from_millis(2);

/// Settings with which a demonstration takes seconds.
pub const SMALL: [&str; 16] = [
    "--set",
    "training.steps=3",
    "--set",
    "loss.pretrain_steps=1",
    "--set",
    "loss.likelihood_steps=1",
    "--set",
    "loss.samples=4",
    "--set",
    "training.validate_every=2",
    "--set",
    "training.validation_samples=4",
    "--set",
    "batches.batch_size=2",
    "--device",
    "cpu",
];

/// Two networks that take seconds.
const EXPERIMENT: &str = r#"
title = "Two networks"
samples = 4

[config.data]
path = "base/data"
[config.training]
steps = 3
validate_every = 2
validation_samples = 4
[config.loss]
kind = "likelihood"
pretrain_steps = 1
samples = 4
[config.batches]
batch_size = 2

[[rows]]
name = "low-rank"
[[rows]]
name = "deterministic"
set = ["model.head=deterministic"]
"#;

/// Files that are not there after every way to the same end.
const OF_WAYS: [&str; 3] = ["log.txt", ".lock", ".ssn-files"];
/// Files whose content tells when and how fast a program ran.
const OF_TIMES: [&str; 7] =
    ["demo.json", "toy.json", "data.json", "results.json", "table.csv", "table.md", "seed0.json"];

/// How a command ended.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    pub hung: bool,
}

impl Ended {
    /// Whether it ended in a way that a program of ours never should, for another reason than our own SIGKILL.
    pub fn has_crashed(&self) -> bool {
        let aborted =
            self.signal.is_some_and(|signal| signal != 9) || matches!(self.code, Some(101 | 134 | 139));
        let told = ["panicked at", "overflowed its stack", "fatal runtime error"];
        aborted || told.iter().any(|text| self.stderr.contains(text))
    }

    /// The end of what it said.
    pub fn said(&self) -> String {
        let lines: Vec<&str> = self.stderr.lines().rev().take(3).collect();
        format!(
            "code {:?}, signal {:?}: {}",
            self.code,
            self.signal,
            lines.into_iter().rev().collect::<Vec<_>>().join(" | ")
        )
    }
}

pub struct Lab {
    programs: PathBuf,
    folder: TempDir,
}

impl Lab {
    /// Makes a dataset, trains on it, and predicts and scores.
    pub fn new(programs: PathBuf) -> Result<Self, Error> {
        let folder = TempDir::new().map_err(Error::io("create", &std::env::temp_dir()))?;
        let lab = Self { programs, folder };
        let base = lab.path("base");
        let mut words: Vec<OsString> =
            vec!["demo".into(), "--out".into(), base.into(), "--cases".into(), "20".into()];
        words.extend(SMALL.map(OsString::from));
        fs::write(lab.experiment(), EXPERIMENT).map_err(Error::io("write", &lab.experiment()))?;
        let made = finished(&mut lab.ssn(&words), BASE).map_err(Error::io("run", &lab.programs))?;
        match made.code {
            Some(0) => Ok(lab),
            _ => Err(Error::answer("ssn demo", &made.said())),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn data(&self) -> PathBuf {
        self.path("base/data")
    }

    pub fn experiment(&self) -> PathBuf {
        self.path("experiment.toml")
    }

    pub fn trained(&self) -> PathBuf {
        self.path("base/runs/low-rank")
    }

    pub fn predictions(&self) -> PathBuf {
        self.path("base/predictions/low-rank")
    }

    pub fn program(&self, name: &str) -> PathBuf {
        self.programs.join(name)
    }

    /// `ssn` with arguments.
    pub fn ssn(&self, words: &[OsString]) -> Command {
        let mut command = Command::new(self.program("ssn"));
        command.args(words).arg("--quiet").current_dir(self.folder.path());
        // Threads that wait for each other make tiny networks slow on busy machines.
        command.env("OMP_NUM_THREADS", "1").env("RAYON_NUM_THREADS", "2").env("RUST_BACKTRACE", "0");
        command
    }

    /// An empty place, where something may have been before.
    pub fn cleared(&self, name: &str) -> Result<PathBuf, Error> {
        let path = self.path(name);
        let removed = fs::remove_dir_all(&path);
        if let Err(error) =
            removed.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
        {
            return Err(Error::io("remove", &path)(error));
        }
        fs::create_dir_all(&path).map_err(Error::io("create", &path))?;
        Ok(path)
    }
}

/// Runs a command to its end, or kills it with all that it started.
pub fn end(command: &mut Command) -> Result<Ended, Error> {
    let program = PathBuf::from(command.get_program());
    finished(command, LONGEST).map_err(Error::io("run", &program))
}

fn finished(command: &mut Command, longest: Duration) -> io::Result<Ended> {
    // Files instead of pipes: a child of a child may keep a pipe open.
    let [stdout, stderr] = [tempfile::NamedTempFile::new()?, tempfile::NamedTempFile::new()?];
    command.stdin(Stdio::null()).stdout(stdout.reopen()?).stderr(stderr.reopen()?).process_group(0);
    let mut child = command.spawn()?;
    let start = Instant::now();
    let (status, hung) = loop {
        if let Some(status) = child.try_wait()? {
            break (status, false);
        }
        if start.elapsed() > longest {
            Command::new("kill").args(["-KILL", "--", &format!("-{}", child.id())]).status()?;
            break (child.wait()?, true);
        }
        sleep(GLANCE);
    };
    let text = |file: &tempfile::NamedTempFile| {
        Ok::<_, io::Error>(String::from_utf8_lossy(&fs::read(file.path())?).into_owned())
    };
    Ok(Ended {
        code: status.code(),
        signal: status.signal(),
        stdout: text(&stdout)?,
        stderr: text(&stderr)?,
        hung,
    })
}

/// Everything below a folder by its path, without what depends on times; of some files only that they are there.
pub fn tree(folder: &Path) -> io::Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            files.extend(
                tree(&path)?.into_iter().map(|(below, bytes)| (PathBuf::from(&name).join(below), bytes)),
            );
        } else if !OF_WAYS.contains(&name.as_str()) && !name.starts_with("events.") {
            let is_of_times = OF_TIMES.contains(&name.as_str());
            let name = if name.starts_with(".ssn-partial-") { ".ssn-partial" } else { &name };
            files.insert(name.into(), if is_of_times { vec![] } else { fs::read(&path)? });
        }
    }
    Ok(files)
}

/// The first file in which two trees differ.
pub fn difference(
    found: &BTreeMap<PathBuf, Vec<u8>>,
    expected: &BTreeMap<PathBuf, Vec<u8>>,
) -> Option<String> {
    let other = expected.iter().find(|(path, bytes)| found.get(*path) != Some(bytes)).map(|(path, _)| path);
    let more = found.keys().find(|path| !expected.contains_key(*path));
    other.or(more).map(|path| path.display().to_string())
}

/// A copy of a folder.
pub fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    let copied = Command::new("cp").arg("-a").arg(from).arg(to).status();
    match copied {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(Error::io("copy", from)(io::Error::other("cp failed"))),
        Err(error) => Err(Error::io("copy", from)(error)),
    }
}
