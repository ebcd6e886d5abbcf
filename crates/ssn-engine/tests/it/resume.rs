//! A run that was cut goes on to the bytes of one that was not, wherever and however it was cut.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use ssn_testing::process::{Ended, run_to_end, send, wait_for_end};

use crate::common::cut::{Chance, comes_true, count, cut, last_row};
use crate::common::{Images, Lab, STEPS, assert_same, fails, finishes, generation, outcome, verified};

/// Cuts per kind of images and number of workers.
const CUTS: usize = 20;

/// The signals that a run answers by saving, and the one that nothing answers.
const SIGNALS: [&str; 4] = ["TERM", "INT", "USR1", "KILL"];

/// Cuts a run at random moments until it is finished or was cut often enough; gives how often that was.
fn cut_often(lab: &Lab, run: &Path, chance: &mut Chance, most: usize) -> usize {
    let mut command = lab.begin(run);
    let mut cuts = 0;
    loop {
        let signal = SIGNALS[chance.below(4) as usize];
        // Beyond the last row, which may come from a process that was killed, and be removed by the next.
        let step = if cuts < most { last_row(run) + 1 + chance.below(6) } else { u64::MAX };
        let ended = cut(&mut command, signal, chance.micros(8000), || last_row(run) >= step);
        match (ended.code, signal) {
            (Some(0), _) => return cuts,
            (None, "KILL") => {}
            (Some(75), "TERM" | "INT" | "USR1") => {
                let sentence =
                    format!("error: stopped on request; go on with `ssn train --resume {}`", run.display());
                assert!(ended.stderr.ends_with(&(sentence + "\n")), "{}", ended.stderr);
            }
            _ => panic!("SIG{signal} after step {step}: {ended:?}"),
        }
        cuts += 1;
        verified(run);
        command = lab.resume(run);
    }
}

fn cuts_change_nothing(images: Images, workers: u16) {
    // Those with workers have a mean over the last steps beside the weights.
    let average = format!("training.ema={}", 8 * workers);
    let lab = Lab::new(images).workers(workers).with(&[&average]);
    let expected = outcome(&lab.uncut("uncut"));
    let mut chance = Chance::new(u64::from(workers) + if images == Images::Flat { 10 } else { 20 });
    let (mut cuts, mut runs) = (0, 0);
    while cuts < count(CUTS) {
        runs += 1;
        let run = lab.path(&format!("cut-{runs}"));
        cuts += cut_often(&lab, &run, &mut chance, count(CUTS) - cuts);
        assert_same(&outcome(&run), &expected, &format!("run {runs}, after {cuts} cuts"));
    }
    eprintln!("{cuts} cuts of {runs} runs");
}

#[test]
fn cuts_in_2d_change_nothing() {
    cuts_change_nothing(Images::Flat, 0);
}

#[test]
fn cuts_in_2d_with_workers_change_nothing() {
    cuts_change_nothing(Images::Flat, 2);
}

#[test]
fn cuts_in_3d_change_nothing() {
    cuts_change_nothing(Images::Volumes, 0);
}

#[test]
fn cuts_in_3d_with_workers_change_nothing() {
    cuts_change_nothing(Images::Volumes, 2);
}

#[test]
fn a_run_repeats_itself_with_any_number_of_workers() {
    for images in [Images::Flat, Images::Volumes] {
        let lab = Lab::new(images).with(&["training.steps=12"]);
        let expected = outcome(&lab.uncut("first"));
        assert_same(&outcome(&lab.uncut("again")), &expected, "again");
        let lab = lab.workers(2);
        assert_same(&outcome(&lab.uncut("workers")), &expected, "with workers");
    }
}

/// The steps of the validations in a run's metrics.
fn validations(run: &Path) -> Vec<u64> {
    let text = std::fs::read_to_string(run.join("metrics.csv")).unwrap_or_default();
    let rows = text.lines().skip(1).filter(|row| row.contains(",,,,,"));
    rows.filter(|row| !row.ends_with(",,,,"))
        .map(|row| row.split(',').next().unwrap().parse().unwrap())
        .collect()
}

/// The generation of a step that is due for validation is saved just before it; validations here take long.
#[test]
fn a_cut_within_a_validation_changes_nothing() {
    let lab = Lab::new(Images::Flat).with(&[
        "training.steps=6",
        "training.validate_every=3",
        "training.validation_samples=300",
    ]);
    let expected = outcome(&lab.uncut("uncut"));
    let mut chance = Chance::new(3);
    let mut hits = BTreeMap::new();
    for attempt in 0..40 {
        let signal = if attempt % 4 < 2 { "KILL" } else { SIGNALS[chance.below(3) as usize] };
        let step = [3, 6][attempt % 2];
        let run = lab.path(&format!("cut-{attempt}"));
        let begun = || generation(&run, step).exists();
        let ended = cut(&mut lab.begin(&run), signal, chance.micros(10_000), begun);
        if ended.code != Some(0) && !validations(&run).contains(&step) {
            assert_eq!(ended.code, (signal != "KILL").then_some(75), "{ended:?}");
            *hits.entry((step, signal == "KILL")).or_insert(0) += 1;
        }
        finishes(&mut lab.resume(&run));
        assert_same(&outcome(&run), &expected, &format!("SIG{signal} in the validation of step {step}"));
        if hits.len() == 4 {
            eprintln!("{hits:?} cuts within validations");
            return;
        }
    }
    panic!("the validations were not met: {hits:?}");
}

/// A run that has no reason to end or to save, and how it ends when it is sent these signals before it executes another
/// instruction.
fn interrupted(run: &str, signals: &[&str]) -> (Lab, PathBuf, Ended) {
    let lab = Lab::new(Images::Flat).with(&["training.steps=100000", "training.save_every=100000"]);
    let lab = lab.with(&["training.validate_every=0", "training.log_every=1"]);
    let run = lab.path(run);
    let mut child = lab.begin(&run).spawn().unwrap();
    assert!(comes_true(&mut child, || last_row(&run) > 4));
    for signal in [&["STOP"], signals, &["CONT"]].concat() {
        send(signal, child.id().into());
    }
    let ended = wait_for_end(child);
    (lab, run, ended)
}

#[test]
fn schedulers_that_warn_again_do_not_keep_a_run_from_saving() {
    let (_lab, run, ended) = interrupted("run", &["USR1", "TERM", "USR1"]);
    assert_eq!(ended.code, Some(75), "{}", ended.stderr);
    assert!(ended.stderr.contains("stopped on request"), "{}", ended.stderr);
    assert_eq!(verified(&run), [last_row(&run)]);
}

#[test]
fn a_closed_terminal_lets_a_run_save_and_nohup_lets_it_go_on() {
    let lab = Lab::new(Images::Flat).with(&["training.steps=100000", "training.save_every=100000"]);
    let lab = lab.with(&["training.validate_every=0", "training.log_every=1"]);
    for (disposition, goes_on) in [("default", false), ("ignore", true)] {
        let run = lab.path(disposition);
        let begin = lab.begin(&run);
        let mut command = Command::new("env");
        command.args([&format!("--{disposition}-signal=HUP"), "OMP_NUM_THREADS=1"]);
        command.arg(begin.get_program()).args(begin.get_args());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        assert!(comes_true(&mut child, || last_row(&run) > 4));
        send("HUP", child.id().into());
        if goes_on {
            let row = last_row(&run);
            assert!(comes_true(&mut child, || last_row(&run) > row + 4));
            send("TERM", child.id().into());
        }
        let ended = wait_for_end(child);
        assert_eq!(ended.code, Some(75), "{}", ended.stderr);
        assert_eq!(verified(&run), [last_row(&run)]);
    }
}

#[test]
fn checkpoints_are_due_after_some_time_too() {
    let lab = Lab::new(Images::Flat).with(&["training.save_every=1000", "training.validate_every=0"]);
    let lab = lab.with(&["training.steps=100000", "training.save_minutes=1e-6"]);
    let run = lab.path("run");
    cut(&mut lab.begin(&run), "KILL", Duration::ZERO, || last_row(&run) >= 8);
    assert!(!verified(&run).is_empty());
}

/// The run is in the middle of a step that takes seconds: without the interrupt, it would save after that.
#[test]
fn an_interrupt_after_another_signal_ends_at_once() {
    let lab = Lab::new(Images::Flat).with(&["training.save_every=100000", "training.validate_every=0"]);
    let lab = lab.with(&["loss.samples=2000", "training.log_every=1"]);
    let run = lab.path("run");
    let mut child = lab.begin(&run).spawn().unwrap();
    assert!(comes_true(&mut child, || last_row(&run) == 3));
    // Loading the next batch takes a tenth of this.
    let (pid, before) = (child.id(), ticks(child.id()));
    assert!(comes_true(&mut child, || ticks(pid) >= before + 5));
    assert!(send("TERM", pid.into()));
    let mut told = String::new();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    while !told.contains("stopping after this step") {
        assert!(lines.read_line(&mut told).unwrap() > 0, "it ended: {told}");
    }
    assert!(send("INT", pid.into()));
    lines.read_to_string(&mut told).unwrap();
    assert_eq!(wait_for_end(child).code, Some(75), "{told}");
    assert!(!told.contains("error: "), "{told}");
    assert!(verified(&run).is_empty(), "it had no time to save");
}

/// How long a process has computed, in hundredths of a second.
fn ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    fields.split(' ').nth(11).unwrap().parse().unwrap()
}

#[test]
fn a_run_without_a_checkpoint_says_that_it_begins_again() {
    let lab = Lab::new(Images::Flat).with(&["training.save_every=1000", "training.validate_every=0"]);
    let expected = outcome(&lab.uncut("uncut"));
    let run = lab.path("run");
    cut(&mut lab.begin(&run), "KILL", Duration::ZERO, || last_row(&run) >= 4);
    let ended = finishes(&mut lab.resume(&run));
    assert!(ended.stderr.contains("no checkpoint was saved yet: begins at step 0"), "{}", ended.stderr);
    assert_same(&outcome(&run), &expected, "from the beginning");
}

/// With a learning rate that changes nothing, no validation after the first is better.
#[test]
fn patience_lasts_across_a_resume() {
    let lab = Lab::new(Images::Flat).with(&["training.patience=3", "optimizer.learning_rate=1e-30"]);
    let lab = lab.with(&["optimizer.decay=constant", "training.validate_every=4"]);
    let uncut = lab.uncut("uncut");
    assert_eq!(
        *verified(&uncut).last().unwrap(),
        16,
        "the first validation is the best, and three more follow"
    );
    let expected = outcome(&uncut);
    for (signal, step) in [("TERM", 10), ("KILL", 10), ("TERM", 13), ("KILL", 13)] {
        let run = lab.path(&format!("{signal}-{step}"));
        cut(&mut lab.begin(&run), signal, Duration::ZERO, || last_row(&run) >= step);
        finishes(&mut lab.resume(&run));
        assert_same(&outcome(&run), &expected, &format!("SIG{signal} after step {step}"));
    }
    finishes(&mut lab.resume(&uncut));
    assert_same(&outcome(&uncut), &expected, "a run that ended early ends again");
}

#[test]
fn a_time_limit_stops_a_run_that_can_go_on() {
    let lab = Lab::new(Images::Flat).with(&["training.log_every=1"]);
    let expected = outcome(&lab.uncut("uncut"));
    let run = lab.path("run");
    let advice = format!("the time is up; go on with `ssn train --resume {}`", run.display());
    // Six microseconds.
    fails(lab.begin(&run).args(["--time-limit", "1e-7"]), 75, &[&advice]);
    assert_eq!(last_row(&run), 0);
    // To open a run takes less than its steps: a limit twice as long as one that allowed none does not allow all.
    let (mut minutes, mut stops) = (2e-4, vec![]);
    while last_row(&run) < STEPS {
        let ended = run_to_end(lab.resume(&run).args(["--time-limit", &minutes.to_string()]));
        let step = last_row(&run);
        assert_eq!(verified(&run).last(), Some(&step), "what is done is saved");
        if step < STEPS {
            assert_eq!(ended.code, Some(75), "after step {step}: {}", ended.stderr);
            assert!(ended.stderr.contains(&advice), "{}", ended.stderr);
            stops.push(step);
        } else {
            assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        }
        minutes *= 2.0;
    }
    assert!(stops.iter().any(|step| (1..STEPS).contains(step)), "stopped after steps {stops:?}");
    finishes(&mut lab.resume(&run));
    assert_same(&outcome(&run), &expected, "in slices of time");
}
