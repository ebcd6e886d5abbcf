//! A run from where it stands to its end: steps, rows, validations, checkpoints.
//!
//! What happens after step k is a function of the config and k, so that a run that was stopped and one that was not
//! write the same bytes.
//!
//! Ranks drive one run together: each decides the same, and the first writes.

use ssn_nn::NnError;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ssn_data::{Batch, DataLoader, LoaderConfig, Replica, Split};
use tch::Device;

use super::events::Events;
use super::folder::{CONFIG, RunFolder};
use super::incident;
use super::metrics::Metrics;
use super::pace::Pace;
use super::resolve::Resolved;
use super::validate::Validator;
use super::watch::{Event, Watch};
use crate::checkpoint::interval::Interval;
use crate::checkpoint::{Best, Checkpoints, Damaged, Newest, Progress};
use crate::error::{Result, TrainError};
use crate::trainer::Trainer;
use ssn_nn::communicator::{Ranks, gather_values, leads};
use ssn_nn::model::{Execution, Model, Precision};

/// So many steps in a row that cannot be applied end a run.
const MOST_INCIDENTS: u32 = 10;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// All steps are done.
    Finished,
    /// Validations stopped getting better.
    Early,
    /// It was asked to stop, and can go on.
    Stopped,
    /// The time is up, and it can go on.
    OutOfTime,
    /// Too many steps in a row could not be applied; the newest checkpoint is from before them.
    NonFinite,
}

/// A run, ready to go on.
pub struct Run {
    resolved: Resolved,
    trainer: Trainer,
    progress: Progress,
    validator: Option<Validator>,
    desk: Desk,
    ranks: Option<Arc<dyn Ranks>>,
    pace: Pace,
}

/// The folder of a run, for who writes into it.
struct Desk {
    folder: RunFolder,
    checkpoints: Checkpoints,
    /// Nothing at ranks that do not write.
    pen: Option<Pen>,
}

/// What is written step by step.
struct Pen {
    metrics: Metrics,
    events: Events,
}

/// What a rank says where another has no batch.
const LOST: &str = "another rank could not load a case, and says which";

impl Run {
    /// A run at its newest checkpoint that verifies, or at its beginning if it has none; alone, or as one of several ranks.
    ///
    /// # Errors
    /// Among others, checkpoints of which none verifies: to begin again would remove what is left of the run.
    pub fn start(
        folder: RunFolder,
        resolved: Resolved,
        device: Device,
        ranks: Option<Arc<dyn Ranks>>,
        watch: &mut dyn Watch,
    ) -> Result<Self> {
        let config = &resolved.config;
        let seed = config.training.seed;
        let precision = config.training.precision.map_or_else(|| Precision::usual(device), Ok)?;
        if let Some(ranks) = &ranks {
            check_alike(&**ranks, device, precision)?;
        }
        let execution = Execution::on(device, precision);
        let checkpoints = folder.checkpoints()?;
        let writes = leads(ranks.as_ref());
        if writes {
            checkpoints.remove_unfinished()?;
        }
        let Newest { generation, damaged } = newest(&checkpoints, ranks.as_deref())?;
        if let (None, Some(first)) = (&generation, damaged.first()) {
            return Err(lost(folder.path(), first, damaged.len()));
        }
        let (method, rate, loss) = (config.optimizer.method, config.learning_rate()?, config.loss);
        let (model, progress) = match &generation {
            None => (Model::new(&resolved.model, execution, seed)?, Progress::new(0, seed)),
            Some(generation) => (generation.model(execution)?, generation.progress.clone()),
        };
        let trainer = Trainer::new(model, method, rate, loss, seed)?.with_average(config.training.average)?;
        let trainer = match &generation {
            None => trainer,
            Some(generation) => generation.resume(trainer)?,
        };
        let trainer = match &ranks {
            Some(ranks) => trainer.with_ranks(ranks.clone(), config.shares_norm(ranks.size()))?,
            None => trainer,
        };
        if writes {
            for (damaged, aside) in damaged.iter().zip(checkpoints.set_aside(&damaged)?) {
                watch.saw(Event::PassedOver { reason: &damaged.reason, aside });
            }
        }
        if progress.step > 0 {
            watch.saw(Event::Resumed { step: progress.step });
        }
        let pen = match writes {
            true => Some(Pen {
                metrics: Metrics::open(folder.path(), progress.step)?,
                events: Events::create(folder.path())?,
            }),
            false => None,
        };
        let validator = Validator::new(&resolved);
        let desk = Desk { folder, checkpoints, pen };
        Ok(Self { resolved, trainer, progress, validator, desk, ranks, pace: Pace::default() })
    }

    /// Steps done.
    pub fn steps_done(&self) -> u64 {
        self.progress.step
    }

    /// How GPUs of several ranks sum, in words.
    pub fn gpu_sums(&self) -> Option<&'static str> {
        self.trainer.gpu_sums()
    }

    /// How fast it was so far; nothing for a short run.
    pub fn pace(&self) -> Option<Pace> {
        (self.pace.steps > 0).then_some(self.pace)
    }

    /// Where the run stands.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Goes on to the end, until somebody stops it, or until the time is up.
    ///
    /// # Errors
    /// What cannot be gone on from. A case that cannot be loaded is told after a checkpoint was saved.
    pub fn go(
        &mut self,
        loader: &LoaderConfig,
        limit: Option<Duration>,
        watch: &mut dyn Watch,
    ) -> Result<Ended> {
        let ended = self.steps(loader, limit, watch)?;
        self.wait_for_all()?;
        Ok(ended)
    }

    /// Takes steps until one of them, or somebody, ends the run.
    fn steps(
        &mut self,
        loader: &LoaderConfig,
        limit: Option<Duration>,
        watch: &mut dyn Watch,
    ) -> Result<Ended> {
        let training = self.resolved.config.training.clone();
        let start = Instant::now();
        if let Some(ended) = self.after_step(watch)? {
            return Ok(ended);
        }
        let ranks = self.ranks.as_ref();
        let replica =
            ranks.map_or(Replica::SINGLE, |ranks| Replica { rank: ranks.rank(), world_size: ranks.size() });
        let config = LoaderConfig { start: self.progress.step, replica, ..loader.clone() };
        let cases = self.resolved.dataset.subset(&self.resolved.parts, Split::Train);
        let mut batches = DataLoader::new(Arc::new(cases), training.seed, self.resolved.batches()?, &config)?;
        let mut following = None;
        while self.progress.step < training.steps {
            let (step_start, gpu_start) = (Instant::now(), self.trainer.gpu_seconds().unwrap_or(0.0));
            let batch = following.take().or_else(|| batches.next());
            let is_late = limit.is_some_and(|limit| start.elapsed() >= limit);
            let is_lost = matches!(batch, Some(Err(_)));
            let [is_lost, is_stopped, is_late] = self.met_by_any([is_lost, watch.should_stop(), is_late])?;
            if is_lost || is_stopped || is_late {
                self.save(watch)?;
            }
            if is_lost {
                self.wait_for_all()?;
            }
            let batch = match batch {
                Some(Err(error)) => return Err(error.into()),
                _ if is_lost => return Err(NnError::Ranks { reason: LOST.to_owned() }.into()),
                _ if is_late => return Ok(Ended::OutOfTime),
                Some(Ok(batch)) if !is_stopped => batch,
                _ => return Ok(Ended::Stopped),
            };
            self.trainer.begin(&batch)?;
            // A GPU gets the next batch while it works on this one, which is finished whatever comes of that.
            let mut staged = Ok(());
            if self.trainer.gpu_seconds().is_some() && self.progress.step + 1 < training.steps {
                following = batches.next();
                if let Some(Ok(next)) = &following {
                    staged = self.trainer.stage(next);
                }
            }
            if self.finish_step(&batch, watch)? == MOST_INCIDENTS {
                return Ok(Ended::NonFinite);
            }
            staged?;
            let gpu_seconds = self.trainer.gpu_seconds().unwrap_or(0.0) - gpu_start;
            self.pace.add(step_start.elapsed().as_secs_f64(), gpu_seconds);
            if let Some(ended) = self.after_step(watch)? {
                return Ok(ended);
            }
        }
        Ok(Ended::Finished)
    }

    /// Launchers end all ranks soon after the first: none ends before the one that writes has saved what is done.
    fn wait_for_all(&self) -> Result<()> {
        if let Some(ranks) = &self.ranks {
            ranks.gather(&[])?;
        }
        Ok(())
    }

    /// What any of the ranks meets.
    fn met_by_any<const N: usize>(&self, met: [bool; N]) -> Result<[bool; N]> {
        let Some(ranks) = &self.ranks else { return Ok(met) };
        let mut counts = met.map(f64::from);
        ranks.sum_f64(&mut counts)?;
        Ok(counts.map(|count| count > 0.0))
    }

    /// Writes what a step that was not applied was made of, on all ranks; gives the file to the one that writes.
    fn incident(&self, batch: &Batch, reason: &TrainError) -> Result<Option<PathBuf>> {
        let mut items = incident::items(batch);
        if let Some(ranks) = &self.ranks {
            items = gather_values(&**ranks, &items)?.into_iter().flatten().collect();
        }
        if self.desk.pen.is_none() {
            return Ok(None);
        }
        let rate = self.resolved.config.learning_rate()?.at(batch.number);
        incident::write(self.desk.folder.path(), batch.number, &items, reason, rate).map(Some)
    }

    /// The end of a step; gives the number of steps in a row that could not be applied.
    fn finish_step(&mut self, batch: &Batch, watch: &mut dyn Watch) -> Result<u32> {
        match self.trainer.finish() {
            Ok(report) => {
                self.progress.interval.add(&report);
                self.progress.incidents = 0;
            }
            Err(reason @ TrainError::NonFinite { .. }) => {
                if let Some(file) = self.incident(batch, &reason)? {
                    watch.saw(Event::Incident { reason: &reason, file });
                }
                self.progress.incidents += 1;
            }
            Err(error) => return Err(error),
        }
        self.progress.step += 1;
        let (step, training) = (self.progress.step, &self.resolved.config.training);
        watch.saw(Event::Step(&self.progress.interval));
        if step % training.log_every == 0 || step == training.steps {
            if let Some(pen) = &mut self.desk.pen {
                pen.metrics.training(step, &self.progress.interval)?;
                pen.events.add(step, &self.progress.interval.columns())?;
            }
            self.progress.interval = Interval::default();
        }
        Ok(self.progress.incidents)
    }

    /// What is due after a step, or before the first step of a run that was stopped just then.
    fn after_step(&mut self, watch: &mut dyn Watch) -> Result<Option<Ended>> {
        let (step, training) = (self.progress.step, &self.resolved.config.training);
        let (patience, is_last) = (training.patience, step == training.steps);
        // A step that was not applied leaves nothing new to save or to validate, and where it came from looks doubtful.
        if step == 0 || self.progress.incidents > 0 && !is_last {
            return Ok(None);
        }
        let every = training.validate_every;
        let validates = self.validator.is_some() && (step % every == 0 || is_last);
        // Before the validation: it may take long or be stopped, and what it finds best must be there.
        if validates || is_last || step % training.save_every == 0 {
            self.save(watch)?;
        }
        if validates && !self.validate(watch)? {
            return Ok(Some(Ended::Stopped));
        }
        let unimproved = self.progress.unimproved;
        let is_over = patience.is_some_and(|patience| unimproved >= patience) && !is_last;
        Ok(is_over.then_some(Ended::Early))
    }

    /// Validates; false if it was stopped on the way.
    fn validate(&mut self, watch: &mut dyn Watch) -> Result<bool> {
        let Some(validator) = &self.validator else { return Ok(true) };
        // Whole images have tiles of many sizes: trying out convolutions for each would take longer than it saves.
        let on_gpu = self.trainer.gpu_seconds().is_some();
        if on_gpu {
            tch::Cuda::cudnn_set_benchmark(false);
        }
        let ranks = self.ranks.as_deref();
        let validation = self.trainer.with_result(|model| validator.validate(model, ranks, watch));
        if on_gpu {
            tch::Cuda::cudnn_set_benchmark(true);
        }
        let Some(validation) = validation? else { return Ok(false) };
        let step = self.progress.step;
        // While the mean alone is trained, the rest of the distribution is what it began with.
        let is_whole = step > self.resolved.config.loss.pretrain_steps;
        let is_better = |score: f64| self.progress.best.is_none_or(|best| score < best.score);
        let is_best = is_whole && validation.ged.is_some_and(is_better);
        self.progress.unimproved = if is_best { 0 } else { self.progress.unimproved + u32::from(is_whole) };
        if let Some(score) = validation.ged.filter(|_| is_best) {
            let best = Best { step, score };
            if self.desk.pen.is_some() {
                self.desk.checkpoints.name_best(&best)?;
            }
            self.progress.best = Some(best);
        }
        if let Some(pen) = &mut self.desk.pen {
            pen.metrics.validation(step, &validation)?;
            pen.events.add(step, &validation.columns())?;
        }
        watch.saw(Event::Validated { step, validation: &validation, is_best });
        Ok(true)
    }

    fn save(&mut self, watch: &mut dyn Watch) -> Result<()> {
        if let Some(pen) = &mut self.desk.pen {
            pen.metrics.sync()?;
            watch.saw(Event::Saved(self.desk.checkpoints.save(&self.progress, &mut self.trainer)?));
        }
        Ok(())
    }
}

/// Refuses ranks that would compute in different ways: they would wait for each other at different places.
fn check_alike(ranks: &dyn Ranks, device: Device, precision: Precision) -> Result<()> {
    let all = gather_values(ranks, &(device != Device::Cpu, precision))?;
    let words = |&(is_gpu, precision): &(bool, Precision)| {
        format!("{} in {precision:?}", if is_gpu { "a GPU" } else { "processors" })
    };
    match all.iter().find(|other| **other != all[0]) {
        None => Ok(()),
        Some(other) => {
            let (first, other) = (words(&all[0]), words(other));
            let reason = format!(
                "the first computes on {first} and another on {other}; give all the same --device and \
                 training.precision"
            );
            Err(NnError::Ranks { reason }.into())
        }
    }
}

/// The newest checkpoint, which is the same for all ranks.
fn newest(checkpoints: &Checkpoints, ranks: Option<&dyn Ranks>) -> Result<Newest> {
    let Some(ranks) = ranks else { return checkpoints.newest() };
    let step = |newest: &Newest| newest.generation.as_ref().map(|generation| generation.progress.step);
    let bytes = |newest: &Newest| format!("{:?}", step(newest)).into_bytes();
    if ranks.rank() == 0 {
        let newest = checkpoints.newest()?;
        ranks.gather(&bytes(&newest))?;
        return Ok(newest);
    }
    // The first rank has put the folder in order when it tells what it found.
    let told = ranks.gather(&[])?;
    let newest = checkpoints.newest()?;
    if told.first() != Some(&bytes(&newest)) {
        let reason = "this rank sees another checkpoint than the first one; put the run on a file system that all share";
        return Err(NnError::Ranks { reason: reason.to_owned() }.into());
    }
    Ok(newest)
}

/// The refusal of a run whose checkpoints are all damaged.
fn lost(run: &Path, newest: &Damaged, count: usize) -> TrainError {
    let reason = format!(
        "none of its {count} checkpoints is what was saved ({}); put back a copy of one, or train again with \
         `ssn train {} --out` and a new folder",
        newest.reason,
        run.join(CONFIG).display()
    );
    TrainError::File { path: run.to_owned(), reason }
}
