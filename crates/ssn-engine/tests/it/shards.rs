//! Predictions and evaluations in shards come to the bytes of one process, in any order, after kills, and at once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use ssn_core::Control;
use ssn_data::Shard;
use ssn_eval::{EvaluateConfig, evaluate, evaluate_shard};
use ssn_testing::process::wait_for_end;

use crate::common::{Images, Lab, cut, fails, finishes, tree};

/// A run and what one process makes of its eight cases.
struct Whole {
    lab: Lab,
    run: PathBuf,
    expected: BTreeMap<PathBuf, Vec<u8>>,
}

impl Whole {
    fn new() -> Self {
        let lab = Lab::new(Images::Flat).with(&["training.steps=4"]);
        let (run, out) = (lab.uncut("run"), lab.path("whole"));
        let mut whole = Self { lab, run, expected: BTreeMap::new() };
        finishes(&mut whole.predict(&out));
        evaluate(&EvaluateConfig::new(&out), Control::default()).unwrap();
        whole.expected = tree(&out);
        assert!(whole.expected.contains_key(Path::new("evaluation/summary.json")));
        whole
    }

    fn predict(&self, out: &Path) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ssn-engine"));
        command.arg("predict").arg(&self.run).args(["--split", "all", "--probabilities", "--out"]).arg(out);
        command.env("OMP_NUM_THREADS", "1");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn shard(&self, out: &Path, shard: &str) -> Command {
        let mut command = self.predict(out);
        command.args(["--quiet", "--shard", shard]);
        command
    }

    /// A folder holds the same files with the same bytes, but for what a killed process was writing.
    fn assert_same(&self, out: &Path) {
        let mut found = tree(out);
        found.retain(|path, _| !path.to_string_lossy().contains(".ssn-partial"));
        assert!(found.keys().eq(self.expected.keys()), "{:?} {:?}", found.keys(), self.expected.keys());
        let differ: Vec<_> = found.keys().filter(|path| found[*path] != self.expected[*path]).collect();
        assert!(differ.is_empty(), "{differ:?} differ");
    }
}

#[test]
fn shards_in_any_order_come_to_the_bytes_of_one_process() {
    let whole = Whole::new();
    let out = whole.lab.path("shards");
    let index = out.join("prediction.csv");

    let third = finishes(&mut whole.shard(&out, "3/3")).stdout;
    assert!(third.contains("predicted   2 cases"), "{third}");
    assert!(third.contains("index       1 of 3 shards is done; the last one writes it"), "{third}");
    finishes(&mut whole.shard(&out, "1/3"));
    let again = finishes(whole.shard(&out, "1/3").arg("--json")).stdout;
    let again: serde_json::Value = serde_json::from_str(&again).unwrap();
    assert_eq!((&again["predicted"], &again["kept"], &again["index"]), (&0.into(), &3.into(), &().into()));
    assert_eq!(again["shards"], serde_json::json!({ "done": 2, "of": 3 }));
    let first = out.join("synthetic-00001.ssn.safetensors");
    cut::cut(&mut whole.shard(&out, "2/3"), "KILL", Duration::ZERO, || first.exists());
    let last = finishes(&mut whole.shard(&out, "2/3")).stdout;
    assert!(last.contains(&format!("index       {}", index.display())), "{last}");

    // The second shard is run twice, and the first one last.
    let args = EvaluateConfig::new(&out);
    let score = |number| evaluate_shard(&args, Shard::new(number, 3).unwrap(), Control::default()).unwrap();
    for (number, done) in [(2, 1), (3, 2), (2, 2)] {
        assert_eq!(score(number).err().map(|waiting| waiting.done), Some(done));
    }
    assert!(!out.join("evaluation/summary.json").exists());
    assert_eq!(score(1).unwrap().cases.len(), 8);
    whole.assert_same(&out);
    // All is there: any shard, of any number, finds that, and changes nothing.
    finishes(&mut whole.shard(&out, "2/5"));
    assert!(evaluate_shard(&args, Shard::new(4, 5).unwrap(), Control::default()).unwrap().is_ok());
    whole.assert_same(&out);
}

#[test]
fn shards_at_once_come_to_the_bytes_of_one_process() {
    let whole = Whole::new();
    let out = whole.lab.path("shards");
    // More shards than cases, each as a launcher starts it.
    let launched = |rank: usize, names: [&str; 2]| {
        let mut command = whole.predict(&out);
        command.env(names[0], rank.to_string()).env(names[1], "9").spawn().unwrap()
    };
    let names = [
        ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"],
        ["PMI_RANK", "PMI_SIZE"],
        ["SLURM_PROCID", "SLURM_STEP_NUM_TASKS"],
    ];
    let children: Vec<_> = (0..9).map(|rank| launched(rank, names[rank % 3])).collect();
    for (rank, child) in children.into_iter().enumerate() {
        let ended = wait_for_end(child);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let shard = format!("works on shard {}/9;", rank + 1);
        assert_eq!(ended.stderr.matches(&shard).count(), 1, "{}", ended.stderr);
        let own = if rank < 8 { "predicted   1 cases" } else { "predicted   0 cases" };
        assert!(ended.stdout.contains(own), "{}", ended.stdout);
    }
    let args = EvaluateConfig::new(&out);
    let score = |number: usize| {
        evaluate_shard(&args, Shard::new(number, 4).unwrap(), Control::default()).unwrap().is_ok()
    };
    let complete = thread::scope(|scope| {
        let all: Vec<_> = (1..=4).map(|number| scope.spawn(move || score(number))).collect();
        all.into_iter().map(|one| one.join().unwrap()).filter(|complete| *complete).count()
    });
    assert!(complete >= 1);
    whole.assert_same(&out);
}

#[test]
fn the_whole_command_does_what_a_lost_shard_left() {
    let whole = Whole::new();
    let out = whole.lab.path("shards");
    finishes(&mut whole.shard(&out, "1/2"));
    assert!(!out.join("prediction.csv").exists());
    // What is asked for counts for all cases: the maps of probabilities are missing in half of them.
    finishes(whole.shard(&out, "2/2").arg("--nifti"));
    let rest = finishes(whole.predict(&out).arg("--quiet")).stdout;
    assert!(rest.contains("predicted   0 cases") && rest.contains(", 8 were there"), "{rest}");

    let out = whole.lab.path("others");
    finishes(&mut whole.shard(&out, "1/2"));
    // An option goes before what a launcher says.
    let rest = finishes(whole.shard(&out, "1/1").env("PMI_RANK", "1").env("PMI_SIZE", "2")).stdout;
    assert!(rest.contains("predicted   4 cases") && rest.contains(", 4 were there"), "{rest}");
    let args = EvaluateConfig::new(&out);
    assert!(evaluate_shard(&args, Shard::new(2, 2).unwrap(), Control::default()).unwrap().is_err());
    evaluate(&args, Control::default()).unwrap();
    whole.assert_same(&out);
}

#[test]
fn what_is_no_shard_is_refused() {
    let lab = Lab::new(Images::Flat);
    for (wrong, said) in [
        ("0/4", "shards are counted from 1: the first is 1/4"),
        ("5/4", "there is no shard 5 of 4: the last is 4/4"),
        ("x", "expected I/N, such as 2/8"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ssn-engine"));
        fails(command.arg("predict").arg(lab.path("run")).args(["--shard", wrong]), 2, &[wrong, said]);
    }
}
