//! No kill tears a checkpoint: what is there is whole, and the run goes on from it.

use ssn_testing::process::run_to_end;
use ssn_testing::strace::{self, Call};

use crate::common::cut::{Chance, count, cut, points};
use crate::common::{self, Images, Lab, assert_same, copy, finishes, leftovers, outcome, tree, verified};

/// Kills per kind of images; together they are the 200 that the project promises.
const KILLS: usize = 100;

/// A run that does little but save is killed at random moments, up to so many microseconds after a save: about as long
/// as a step takes, so that some kills come within the next one.
fn kills_tear_nothing(images: Images, workers: u16, micros: u64) {
    let lab = Lab::new(images).workers(workers).with(&[
        "training.steps=1000000",
        "training.save_every=1",
        "training.validate_every=5",
        "training.validation_samples=2",
    ]);
    let run = lab.path("run");
    let mut chance = Chance::new(5);
    let mut command = lab.begin(&run);
    let mut before = 0;
    let mut within_saves = 0;
    for kill in 1..=count(KILLS) {
        let saves = || common::names(&run.join("checkpoints")).iter().any(|name| newer(name, before));
        let ended = cut(&mut command, "KILL", chance.micros(micros), saves);
        assert_eq!(ended.code, None, "kill {kill}: {}", ended.stderr);
        let goes_on = format!("goes on after step {before}\n");
        assert!(kill == 1 || ended.stderr.contains(&goes_on), "kill {kill}: {}", ended.stderr);
        assert!(!ended.stderr.contains("damaged"), "kill {kill}: {}", ended.stderr);
        let newest = *verified(&run).last().unwrap();
        assert!(newest > before, "kill {kill}: {newest} came after {before}");
        before = newest;
        // At most what one save writes and removes at a time; what earlier kills left is gone.
        let left = leftovers(&run);
        assert!(left.len() <= 2, "kill {kill}: {left:?}");
        within_saves += usize::from(!left.is_empty());
        command = lab.resume(&run);
    }
    eprintln!("{within_saves} of {} kills left something unfinished, at step {before}", count(KILLS));
    assert!(within_saves > 0, "no kill came within a save");
}

fn newer(name: &str, than: u64) -> bool {
    name.strip_prefix("step-").is_some_and(|step| step.parse::<u64>().unwrap() > than)
}

#[test]
fn kills_in_2d_tear_nothing() {
    kills_tear_nothing(Images::Flat, 0, 20_000);
}

#[test]
fn kills_in_3d_with_workers_tear_nothing() {
    kills_tear_nothing(Images::Volumes, 2, 80_000);
}

/// Every kill point of a process that goes on with a run, does one step, saves, validates and ends: before each call
/// that changes a file, the checkpoints are the old ones or the new ones, and the run goes on from them. Kills that
/// leave the same files go on in the same way.
#[test]
fn every_kill_point_of_a_save_is_safe() {
    if !strace::is_there() {
        return;
    }
    let lab = Lab::new(Images::Flat);
    let (base, expected) = lab.one_step_to_go(5);
    let run = lab.path("run");
    copy(&base, &run);
    let calls = strace::calls(&lab.resume(&run), &lab.path("trace"));
    assert_same(&outcome(&run), &expected, "traced");
    let of_saves = calls.iter().filter(|call| call.text.contains("checkpoints/")).count();
    assert!(of_saves > 20, "a save has more calls than {of_saves}");
    let mut found = [0, 0];
    let mut seen = vec![];
    for call in points(&calls) {
        copy(&base, &run);
        let Call { name, nth, text } = call;
        let context = format!("{name} {nth}: {text}");
        let ended = run_to_end(&mut strace::inject(&lab.resume(&run), call, "signal=KILL"));
        assert_ne!(ended.code, Some(0), "{context}");
        let newest = *verified(&run).last().unwrap();
        assert!([5, 6].contains(&newest), "{context}: {newest}");
        found[newest as usize - 5] += 1;
        let left = tree(&run);
        if seen.contains(&left) {
            continue;
        }
        seen.push(left);
        finishes(&mut lab.resume(&run));
        assert_same(&outcome(&run), &expected, &context);
        assert!(leftovers(&run).is_empty(), "{context}: {:?}", leftovers(&run));
    }
    let (calls, seen) = (calls.len(), seen.len());
    eprintln!("{calls} kill points, {of_saves} among checkpoints; {seen} states, {found:?} before and after");
    assert!(found[0] > 0 && found[1] > 0);
}

/// Every kill point of a training from its very start: the same command begins it again, or `--resume` goes on with it, and it comes to
/// the same.
#[test]
fn every_kill_point_of_a_start_is_no_dead_end() {
    if !strace::is_there() {
        return;
    }
    let lab = Lab::new(Images::Flat).with(&["training.steps=4", "training.validate_every=0"]);
    let expected = outcome(&lab.uncut("uncut"));
    let run = lab.path("run");
    let calls = strace::calls(&lab.begin(&run), &lab.path("trace"));
    // Saves have a test of their own.
    let calls: Vec<&Call> = calls.iter().take_while(|call| !call.text.contains("checkpoints/")).collect();
    let calls = points(&calls);
    let (mut begun_again, mut killed, mut seen) = (0, 0, vec![]);
    for call in &calls {
        if run.exists() {
            std::fs::remove_dir_all(&run).unwrap();
        }
        let context = format!("{} {}: {}", call.name, call.nth, call.text);
        let ended = run_to_end(&mut strace::inject(&lab.begin(&run), call, "signal=KILL"));
        // Threads open files in different orders: the last of the calls may not come in every start.
        if ended.code == Some(0) {
            continue;
        }
        killed += 1;
        let left = run.exists().then(|| tree(&run));
        if seen.contains(&left) {
            continue;
        }
        seen.push(left);
        let is_run = run.join("config.toml").exists();
        if !is_run {
            let advice = if run.join(".lock").exists() { "begin it again" } else { "name the folder" };
            common::fails(&mut lab.resume(&run), 2, &[advice]);
            begun_again += 1;
        }
        finishes(&mut if is_run { lab.resume(&run) } else { lab.begin(&run) });
        assert_same(&outcome(&run), &expected, &context);
        let unfinished = |name: &String| name.starts_with(".ssn-partial");
        assert!(!common::names(&run).iter().any(unfinished), "{context}: {:?}", common::names(&run));
    }
    let states = seen.len();
    eprintln!("{killed} of {} kill points, {states} states, {begun_again} of them begun again", calls.len());
    assert!(begun_again > 2 && killed > calls.len() / 2);
}
