//! What the user sees of a run: a bar or lines on standard error, and `log.txt`.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use ssn_cli::progress::Progress;
use ssn_cli::{Exit, Failure};
use ssn_data::Split;
use ssn_train::run::{Callback, ResolvedRun, Run, TrainingEvent};

const LOG: &str = "log.txt";

/// Shows a run and listens to signals.
pub struct Console {
    stop: Arc<AtomicBool>,
    progress: Progress,
    /// Nothing for a rank that is not the first.
    log: Option<File>,
}

impl Console {
    /// Opens the log and says what is about to be trained.
    pub fn new(
        run: &Path,
        resolved: &ResolvedRun,
        stop: Arc<AtomicBool>,
        quiet: bool,
    ) -> Result<Self, Failure> {
        let path = run.join(LOG);
        let log = OpenOptions::new().create(true).append(true).open(&path);
        let log =
            log.map_err(|error| Failure::new(Exit::Io, format!("cannot write {}: {error}", path.display())))?;
        let steps = resolved.config.training.steps as usize;
        let mut console = Self { stop, progress: Progress::new(steps, "steps", quiet), log: Some(log) };
        let count = |split| resolved.parts.iter().filter(|part| **part == split).count();
        let [train, validation, test] = Split::ALL.map(count);
        let command: Vec<String> = std::env::args().collect();
        console.log(&format!("ssn {}: {}", env!("CARGO_PKG_VERSION"), command.join(" ")));
        console.tell(&format!(
            "{} cases for training, {} for validation, {} for test; run folder {}",
            train,
            validation,
            test,
            run.display()
        ));
        if validation == 0 && resolved.config.training.validate_every > 0 {
            console
                .tell("no case is for validation: there is no best checkpoint, and patience has no effect");
        }
        Ok(console)
    }

    /// Only listens to signals: another rank shows the run.
    pub fn silent(stop: Arc<AtomicBool>) -> Self {
        Self { stop, progress: Progress::new(0, "steps", true), log: None }
    }

    /// The bar starts where the run stands.
    pub fn begin(&self, run: &Run) {
        self.progress.reached(run.steps_done() as usize);
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.progress.finish();
    }

    /// Writes a line to the log; a log that cannot be written must not end a run.
    pub fn log(&mut self, line: &str) {
        if let Some(log) = &mut self.log {
            // In one write, so that a kill leaves no half of a line. The time is as `2026-11-15T08:00:00Z`.
            let _ = log.write_all(format!("{:.0} {line}\n", Timestamp::now()).as_bytes());
        }
    }

    /// Writes a line for the user and to the log.
    pub fn tell(&mut self, line: &str) {
        if self.log.is_some() {
            self.progress.say(line);
        }
        self.log(line);
    }
}

impl Callback for Console {
    fn should_stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn on_event(&mut self, event: TrainingEvent<'_>) {
        match event {
            TrainingEvent::PassedOver { reason, aside } => self.tell(&format!(
                "passed over a damaged checkpoint, which is now {}: {reason}",
                aside.display()
            )),
            TrainingEvent::Resumed { step } => self.tell(&format!("goes on after step {step}")),
            TrainingEvent::Step(interval) => self.progress.advance(1, || {
                let loss = interval.loss().map_or(String::new(), |loss| format!("loss {loss:.4}"));
                let samples = interval.ess();
                loss + &samples.map_or(String::new(), |samples| format!(", effective samples {samples:.1}"))
            }),
            TrainingEvent::Incident { reason, file } => {
                self.tell(&format!("{reason}; see {}", file.display()))
            }
            TrainingEvent::Validating(done) => {
                self.progress.note(|| format!("validation, {done} cases done"))
            }
            TrainingEvent::Validated { step, validation, is_best } => {
                let show = |name: &str, value: Option<f64>| value.map(|value| format!("{name} {value:.4}"));
                let parts: Vec<String> = [
                    show("GED²", validation.ged),
                    show("diversity", validation.diversity),
                    show("of raters", validation.rater_diversity),
                    show("Dice", validation.dice),
                ]
                .into_iter()
                .flatten()
                .collect();
                let best = if is_best { ", the best so far" } else { "" };
                self.tell(&format!("step {step}: {}{best}", parts.join(", ")));
            }
            TrainingEvent::Saved(folder) => self.log(&format!("saved {}", folder.display())),
        }
    }
}
