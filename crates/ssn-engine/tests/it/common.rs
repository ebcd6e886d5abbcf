//! Small trainings in processes of their own, and what they leave behind.

pub mod cut;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sha2::{Digest, Sha256};
use ssn_data::{Synthetic, SyntheticConfig};
use ssn_testing::process::{Ended, run_to_end};
use tempfile::TempDir;

/// What the images of a training are like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Images {
    /// 16 × 16 pixels, as PNG.
    Flat,
    /// 16³ voxels with masks, as NIfTI.
    Volumes,
}

/// A dataset, settings, and room for runs.
pub struct Lab {
    folder: TempDir,
    settings: Vec<String>,
    workers: u16,
}

/// The steps of a run.
pub const STEPS: u64 = 40;

/// A network and a run as small as they come. Rows, checkpoints and validations are due at different steps.
const SETTINGS: [&str; 11] = [
    "model.plan.width=2",
    "model.plan.levels=2",
    "model.head.stochastic.rank=2",
    "loss.samples=4",
    "loss.pretrain_steps=3",
    "batches.batch_size=2",
    "training.steps=40",
    "training.log_every=2",
    "training.save_every=4",
    "training.validate_every=6",
    "training.validation_samples=4",
];

impl Lab {
    /// Writes a dataset.
    pub fn new(images: Images) -> Self {
        let size = if images == Images::Flat { [1, 16, 16] } else { [16, 16, 16] };
        let config =
            SyntheticConfig { cases: 8, size, mask: images == Images::Volumes, ..SyntheticConfig::default() };
        let folder = tempfile::tempdir().unwrap();
        Synthetic::new(config).unwrap().write(&folder.path().join("data"), &|_| {}).unwrap();
        Self { folder, settings: SETTINGS.map(str::to_owned).to_vec(), workers: 0 }
    }

    /// The same with other settings.
    pub fn with(mut self, settings: &[&str]) -> Self {
        self.settings.extend(settings.iter().map(|setting| (*setting).to_owned()));
        self
    }

    /// The same with threads that prepare batches.
    pub fn workers(mut self, workers: u16) -> Self {
        self.workers = workers;
        self
    }

    /// The folder of the dataset.
    pub fn data(&self) -> PathBuf {
        self.path("data")
    }

    /// A place for a run.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The command that begins a run.
    pub fn begin(&self, run: &Path) -> Command {
        let mut command = self.train();
        command.arg("--data").arg(self.data()).arg("--out").arg(run).arg("--skip-check");
        for setting in &self.settings {
            command.args(["--set", setting]);
        }
        command
    }

    /// The command that goes on with a run.
    pub fn resume(&self, run: &Path) -> Command {
        let mut command = self.train();
        command.arg("--resume").arg(run);
        command
    }

    /// A run that nobody disturbs; gives its folder.
    pub fn uncut(&self, name: &str) -> PathBuf {
        let run = self.path(name);
        finishes(&mut self.begin(&run));
        run
    }

    /// A run that saved every step up to `steps` and was told afterwards to do one more, with a validation.
    ///
    /// Gives what going on with it comes to as well.
    pub fn one_step_to_go(&self, steps: u64) -> (PathBuf, BTreeMap<String, Vec<u8>>) {
        let run = self.path("base");
        let every = format!("training.validate_every={}", steps + 1);
        let length = format!("training.steps={steps}");
        let settings = ["--set", &every, "--set", &length, "--set", "training.save_every=1"];
        finishes(self.begin(&run).args(settings));
        let config = fs::read_to_string(run.join("config.toml")).unwrap();
        let longer = config.replace(&format!("\nsteps = {steps}\n"), &format!("\nsteps = {}\n", steps + 1));
        assert_ne!(longer, config);
        fs::write(run.join("config.toml"), longer).unwrap();
        let uncut = self.path("uncut");
        copy(&run, &uncut);
        finishes(&mut self.resume(&uncut));
        (run, outcome(&uncut))
    }

    fn train(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ssn-engine"));
        // Threads that wait for each other make tiny networks slow on busy machines.
        command.env("OMP_NUM_THREADS", "1").arg("train").args(["--workers", &self.workers.to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

/// Runs a command that must end well.
pub fn finishes(command: &mut Command) -> Ended {
    let ended = run_to_end(command);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    ended
}

/// Runs a command that must end with a code and one sentence that has all these parts.
pub fn fails(command: &mut Command, code: i32, parts: &[&str]) -> Ended {
    let ended = run_to_end(command);
    assert_eq!(ended.code, Some(code), "{}", ended.stderr);
    let told: Vec<&str> = ended.stderr.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!(told.len(), 1, "{}", ended.stderr);
    for part in parts {
        assert!(told[0].contains(part), "{part} is missing in: {}", told[0]);
    }
    ended
}

/// What a run came to: its metrics, its newest generation and its best one, byte by byte.
pub fn outcome(run: &Path) -> BTreeMap<String, Vec<u8>> {
    let checkpoints = run.join("checkpoints");
    let mut files = vec![run.join("metrics.csv")];
    let mut folders = vec![generation(run, *verified(run).last().unwrap())];
    if let Ok(best) = fs::read(checkpoints.join("best.json")) {
        let best: serde_json::Value = serde_json::from_slice(&best).unwrap();
        files.push(checkpoints.join("best.json"));
        folders.push(generation(run, best["step"].as_u64().unwrap()));
    }
    for folder in folders {
        files.extend(fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()));
    }
    let named = |path: PathBuf| {
        (path.strip_prefix(run).unwrap().to_str().unwrap().to_owned(), fs::read(&path).unwrap())
    };
    files.into_iter().map(named).collect()
}

/// Two outcomes are the same; tells which files are not, since their bytes say little.
pub fn assert_same(found: &BTreeMap<String, Vec<u8>>, expected: &BTreeMap<String, Vec<u8>>, context: &str) {
    assert!(found.keys().eq(expected.keys()), "{context}: {:?} {:?}", found.keys(), expected.keys());
    let differ: Vec<&String> = found.keys().filter(|name| found[*name] != expected[*name]).collect();
    assert!(differ.is_empty(), "{context}: {differ:?} differ");
}

/// The folder of a generation.
pub fn generation(run: &Path, step: u64) -> PathBuf {
    run.join(format!("checkpoints/step-{step:09}"))
}

/// The steps of all generations in order, each of which must be what its manifest says.
pub fn verified(run: &Path) -> Vec<u64> {
    let mut steps: Vec<u64> = names(&run.join("checkpoints"))
        .iter()
        .filter_map(|name| Some(name.strip_prefix("step-")?.parse().unwrap()))
        .collect();
    steps.sort_unstable();
    for &step in &steps {
        let folder = generation(run, step);
        let manifest = fs::read(folder.join("manifest.json")).unwrap();
        let manifest: BTreeMap<String, String> = serde_json::from_slice(&manifest).unwrap();
        let files = ["model.safetensors", "optimizer.safetensors", "progress.json", "weights.safetensors"];
        let has_mean = folder.join(files[3]).exists();
        assert!(manifest.keys().eq(&files[..if has_mean { 4 } else { 3 }]), "{}", folder.display());
        for (name, hash) in manifest {
            let digest = Sha256::digest(fs::read(folder.join(&name)).unwrap());
            let found: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(found, hash, "{}", folder.join(name).display());
        }
    }
    steps
}

/// What a killed process left among the checkpoints.
pub fn leftovers(run: &Path) -> Vec<String> {
    names(&run.join("checkpoints")).into_iter().filter(|name| name.starts_with('.')).collect()
}

/// The names in a folder; none if it is not there.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Every file under a folder with its bytes, but for the log, the lock and TensorBoard's events, which any start
/// touches and no start reads. Temporary names have no random part.
pub fn tree(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for name in names(folder) {
        let path = folder.join(&name);
        let name = if name.starts_with(".ssn-partial-") { ".ssn-partial" } else { &name };
        if path.is_dir() {
            files.insert(name.into(), vec![]);
            let inside = tree(&path).into_iter();
            files.extend(inside.map(|(below, bytes)| (Path::new(name).join(below), bytes)));
        } else if !["log.txt", ".lock", ssn_io::OWN_FILES].contains(&name) && !name.starts_with("events.") {
            files.insert(name.into(), fs::read(&path).unwrap());
        }
    }
    files
}

/// A copy of a folder, in the place of what is there.
pub fn copy(from: &Path, to: &Path) {
    if to.exists() {
        fs::remove_dir_all(to).unwrap();
    }
    fs::create_dir(to).unwrap();
    for name in names(from) {
        let (from, to) = (from.join(&name), to.join(&name));
        if from.is_dir() {
            copy(&from, &to);
        } else {
            fs::copy(&from, &to).unwrap();
        }
    }
}
