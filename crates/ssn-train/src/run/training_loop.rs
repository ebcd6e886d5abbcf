//! The training loop of a run, from where it stands to its end: steps, logs, validations, checkpoints.
//!
//! What happens after step k is a function of the config and k, so that a run that was stopped and one that was not
//! write the same bytes.
//!
//! Ranks train one run together: each decides the same, and rank 0 writes.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ssn_data::{Batch, DataLoader, LoaderConfig, Replica, Split};
use ssn_io::ErrorKind;
use ssn_nn::communicator::{Communicator, all_gather_values, is_root};
use ssn_nn::error::{NnError, Result};
use ssn_nn::model::{Execution, Model, Precision};
use tch::Device;

use super::config::RunConfig;
use super::events::{Callback, Event, StopReason};
use super::folder::{CONFIG, ResolvedRun, RunFolder};
use super::logs::{self, RunLogs};
use super::validation::{Validation, Validator};
use crate::checkpoint::{BestValidation, Checkpoints, DamagedCheckpoint, NewestCheckpoint, RunState};
use crate::trainer::Trainer;

/// The throughput of a run, without its first steps.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Throughput {
    /// Steps measured.
    pub steps: u64,
    /// Seconds that they took, without validations and checkpoints.
    pub seconds: f64,
    /// Seconds of these in which a GPU worked on them.
    pub gpu_seconds: f64,
    /// Steps before: convolutions are chosen, kernels compiled, queues filled.
    skipped: u64,
}

/// The warm-up steps that are not measured.
const UNMEASURED_STEPS: u64 = 20;

impl Throughput {
    /// Adds a step.
    fn add(&mut self, seconds: f64, gpu_seconds: f64) {
        if self.skipped < UNMEASURED_STEPS {
            self.skipped += 1;
            return;
        }
        self.steps += 1;
        self.seconds += seconds;
        self.gpu_seconds += gpu_seconds;
    }
}

impl fmt::Display for Throughput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let milliseconds = 1e3 * self.seconds / self.steps.max(1) as f64;
        write!(f, "{milliseconds:.2} ms per step over {} steps", self.steps)?;
        if self.gpu_seconds > 0.0 {
            let idle = 100.0 * (1.0 - self.gpu_seconds / self.seconds.max(f64::MIN_POSITIVE));
            write!(f, ", the GPU idle {:.1} % of that", idle.max(0.0))?;
        }
        Ok(())
    }
}

/// So many steps in a row that cannot be applied end a run.
const MOST_INCIDENTS: u32 = 10;

/// A run, ready to go on.
pub struct Run {
    resolved: ResolvedRun,
    trainer: Trainer,
    progress: RunState,
    validator: Option<Validator>,
    outputs: RunOutputs,
    comm: Option<Arc<dyn Communicator>>,
    throughput: Throughput,
    /// When the newest checkpoint was saved, or the run began.
    saved: Instant,
}

/// The files of a run.
struct RunOutputs {
    folder: RunFolder,
    checkpoints: Checkpoints,
    /// Only on rank 0.
    logs: Option<RunLogs>,
}

/// The error of a rank where another one has no batch.
const LOST: &str = "another rank could not load a case, and says which";

impl Run {
    /// A run at its newest checkpoint that verifies, or at its beginning if it has none; alone, or as one of several ranks.
    ///
    /// # Errors
    /// Among others, checkpoints of which none verifies: to begin again would remove what is left of the run.
    pub fn start(
        folder: RunFolder,
        resolved: ResolvedRun,
        device: Device,
        comm: Option<Arc<dyn Communicator>>,
        callback: &mut dyn Callback,
    ) -> Result<Self> {
        let config = &resolved.config;
        let seed = config.training.seed;
        let precision = config.training.precision.map_or_else(|| Precision::default_on(device), Ok)?;
        if let Some(comm) = &comm {
            check_alike(&**comm, device, precision)?;
        }
        let execution = Execution::on(device, precision);
        let checkpoints = folder.checkpoints()?;
        let writes = is_root(comm.as_ref());
        if writes {
            checkpoints.remove_unfinished()?;
        }
        let NewestCheckpoint { checkpoint, damaged } = newest(&checkpoints, comm.as_deref())?;
        if let (None, Some(first)) = (&checkpoint, damaged.first()) {
            return Err(lost(folder.path(), first, damaged.len()));
        }
        let (method, rate, loss) = (config.optimizer.method, config.learning_rate()?, config.loss);
        let (model, progress) = match &checkpoint {
            None => (Model::new(&resolved.model, execution, seed)?, RunState::new(0, seed)),
            Some(checkpoint) => (checkpoint.model(execution)?, checkpoint.progress.clone()),
        };
        let trainer = Trainer::new(model, method, rate, loss, seed)?.with_ema(config.training.ema)?;
        let trainer = match &checkpoint {
            None => trainer,
            Some(checkpoint) => checkpoint.resume(trainer)?,
        };
        let trainer = match &comm {
            Some(comm) => {
                trainer.with_communicator(comm.clone(), config.syncs_batch_norm(comm.world_size()))?
            }
            None => trainer,
        };
        if writes {
            for (damaged, aside) in damaged.iter().zip(checkpoints.set_aside(&damaged)?) {
                callback.on_event(&Event::PassedOver { reason: damaged.reason.clone(), aside });
            }
        }
        if progress.step > 0 {
            callback.on_event(&Event::Resumed { step: progress.step });
        }
        let logs = writes.then(|| RunLogs::open(folder.path(), progress.step)).transpose()?;
        let validator = Validator::new(&resolved);
        let outputs = RunOutputs { folder, checkpoints, logs };
        let (throughput, saved) = (Throughput::default(), Instant::now());
        Ok(Self { resolved, trainer, progress, validator, outputs, comm, throughput, saved })
    }

    /// Steps done.
    pub fn steps_done(&self) -> u64 {
        self.progress.step
    }

    /// Every setting.
    pub fn config(&self) -> &RunConfig {
        &self.resolved.config
    }

    /// How many numbers the network learns.
    pub fn parameters(&self) -> i64 {
        self.trainer.model().parameters().count()
    }

    /// How GPUs of several ranks sum, in words.
    pub fn all_reduce_backend(&self) -> Option<&'static str> {
        self.trainer.all_reduce_backend()
    }

    /// How fast it was so far; nothing for a short run.
    pub fn throughput(&self) -> Option<Throughput> {
        (self.throughput.steps > 0).then_some(self.throughput)
    }

    /// Where the run stands.
    pub fn progress(&self) -> &RunState {
        &self.progress
    }

    /// Goes on to the end, until somebody stops it, or until the time is up.
    ///
    /// # Errors
    /// What training cannot go on from. A case that cannot be loaded is reported after a checkpoint was saved.
    pub fn train(
        &mut self,
        loader: &LoaderConfig,
        limit: Option<Duration>,
        callback: &mut dyn Callback,
    ) -> Result<StopReason> {
        let config = &self.resolved.config.training;
        let count = |split| self.resolved.parts.iter().filter(|part| **part == split).count();
        let device = match self.trainer.model().execution().device {
            Device::Cuda(number) => format!("cuda:{number}"),
            _ => "cpu".to_owned(),
        };
        let (steps, done, parameters) = (config.steps, self.progress.step, self.parameters());
        callback.on_event(&Event::Began { steps, done, parameters, cases: Split::ALL.map(count), device });
        let reason = self.steps(loader, limit, callback)?;
        self.wait_for_all()?;
        callback.on_event(&Event::Ended { reason, steps: self.progress.step, best: self.progress.best });
        Ok(reason)
    }

    /// Takes steps until one of them, or somebody, ends the run.
    fn steps(
        &mut self,
        loader: &LoaderConfig,
        limit: Option<Duration>,
        callback: &mut dyn Callback,
    ) -> Result<StopReason> {
        let training = self.resolved.config.training.clone();
        let start = Instant::now();
        if let Some(ended) = self.after_step(callback)? {
            return Ok(ended);
        }
        let replica = self.comm.as_ref();
        let replica = replica
            .map_or(Replica::SINGLE, |comm| Replica { rank: comm.rank(), world_size: comm.world_size() });
        let config = LoaderConfig { start: self.progress.step, replica, ..loader.clone() };
        let cases = self.resolved.dataset.subset(&self.resolved.parts, Split::Train);
        let mut batches = DataLoader::new(Arc::new(cases), training.seed, self.resolved.batches()?, &config)?;
        let mut following = None;
        while self.progress.step < training.steps {
            let (step_start, gpu_start) = (Instant::now(), self.trainer.gpu_seconds().unwrap_or(0.0));
            let batch = following.take().or_else(|| batches.next());
            let is_late = limit.is_some_and(|limit| start.elapsed() >= limit);
            let is_lost = matches!(batch, Some(Err(_)));
            let [is_lost, is_stopped, is_late] =
                self.met_by_any([is_lost, callback.should_stop(), is_late])?;
            if is_lost || is_stopped || is_late {
                self.save(callback)?;
            }
            if is_lost {
                self.wait_for_all()?;
            }
            let batch = match batch {
                Some(Err(error)) => return Err(error.into()),
                _ if is_lost => return Err(NnError::communicator(LOST)),
                _ if is_late => return Ok(StopReason::OutOfTime),
                Some(Ok(batch)) if !is_stopped => batch,
                _ => return Ok(StopReason::Stopped),
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
            if self.finish_step(&batch, callback)? == MOST_INCIDENTS {
                return Ok(StopReason::NonFinite);
            }
            staged?;
            let gpu_seconds = self.trainer.gpu_seconds().unwrap_or(0.0) - gpu_start;
            self.throughput.add(step_start.elapsed().as_secs_f64(), gpu_seconds);
            if let Some(ended) = self.after_step(callback)? {
                return Ok(ended);
            }
        }
        Ok(StopReason::Finished)
    }

    /// Launchers end all ranks soon after the first: none ends before the one that writes has saved what is done.
    fn wait_for_all(&self) -> Result<()> {
        if let Some(comm) = &self.comm {
            comm.all_gather(&[])?;
        }
        Ok(())
    }

    /// What any of the ranks meets.
    fn met_by_any<const N: usize>(&self, met: [bool; N]) -> Result<[bool; N]> {
        let Some(comm) = &self.comm else { return Ok(met) };
        let mut counts = met.map(f64::from);
        comm.all_reduce_f64(&mut counts)?;
        Ok(counts.map(|count| count > 0.0))
    }

    /// Writes what a step that was not applied was made of, on all ranks; gives the file to the one that writes.
    fn incident(&self, batch: &Batch, reason: &NnError) -> Result<Option<PathBuf>> {
        let mut items = logs::incident_items(batch);
        if let Some(comm) = &self.comm {
            items = all_gather_values(&**comm, &items)?.into_iter().flatten().collect();
        }
        if self.outputs.logs.is_none() {
            return Ok(None);
        }
        let rate = self.resolved.config.learning_rate()?.at(batch.number);
        logs::write_incident(self.outputs.folder.path(), batch.number, &items, reason, rate).map(Some)
    }

    /// The end of a step; gives the number of steps in a row that could not be applied.
    fn finish_step(&mut self, batch: &Batch, callback: &mut dyn Callback) -> Result<u32> {
        match self.trainer.finish() {
            Ok(report) => {
                self.progress.interval.add(&report);
                self.progress.incidents = 0;
                callback.on_event(&Event::Step(report));
            }
            Err(reason) if reason.kind() == ErrorKind::NonFinite => {
                if let Some(file) = self.incident(batch, &reason)? {
                    let (step, reason) = (self.progress.step + 1, reason.to_string());
                    callback.on_event(&Event::Incident { step, reason, file });
                }
                self.progress.incidents += 1;
            }
            Err(error) => return Err(error),
        }
        self.progress.step += 1;
        let (step, training) = (self.progress.step, &self.resolved.config.training);
        if step % training.log_every == 0 || step == training.steps {
            let interval = std::mem::take(&mut self.progress.interval);
            self.emit(Event::Row { step, means: interval.means() }, callback)?;
        }
        Ok(self.progress.incidents)
    }

    /// What is due after a step, or before the first step of a run that was stopped just then.
    fn after_step(&mut self, callback: &mut dyn Callback) -> Result<Option<StopReason>> {
        let (step, training) = (self.progress.step, &self.resolved.config.training);
        let (patience, is_last) = (training.patience, step == training.steps);
        // A step that was not applied leaves nothing new to save or to validate, and where it came from looks doubtful.
        if step == 0 || self.progress.incidents > 0 && !is_last {
            return Ok(None);
        }
        let every = training.validate_every;
        let validates = self.validator.is_some() && (step % every == 0 || is_last);
        // Before the validation: it may take long or be stopped, and what it finds best must be there.
        let is_due = self.saved.elapsed().as_secs_f64() >= 60.0 * training.save_minutes;
        if validates || is_last || is_due || step % training.save_every == 0 {
            self.save(callback)?;
        }
        if validates && !self.validate(callback)? {
            return Ok(Some(StopReason::Stopped));
        }
        let unimproved = self.progress.unimproved;
        let is_over = patience.is_some_and(|patience| unimproved >= patience) && !is_last;
        Ok(is_over.then_some(StopReason::Early))
    }

    /// Validates; false if it was stopped on the way.
    fn validate(&mut self, callback: &mut dyn Callback) -> Result<bool> {
        let Some(validator) = &self.validator else { return Ok(true) };
        // Whole images have tiles of many sizes: trying out convolutions for each would take longer than it saves.
        let on_gpu = self.trainer.gpu_seconds().is_some();
        if on_gpu {
            tch::Cuda::cudnn_set_benchmark(false);
        }
        let comm = self.comm.as_deref();
        let validation = self.trainer.with_eval_model(|model| validator.validate(model, comm, callback));
        if on_gpu {
            tch::Cuda::cudnn_set_benchmark(true);
        }
        let step = self.progress.step;
        // While the mean alone is trained, the rest of the distribution is what it began with.
        let is_whole = step > self.resolved.config.loss.pretrain_steps;
        let scores = match validation? {
            Validation::Scored(scores) => scores,
            Validation::Unscored { reason } => {
                callback.on_event(&Event::Unscored { step, reason });
                self.progress.unimproved += u32::from(is_whole);
                return Ok(true);
            }
            Validation::Stopped => return Ok(false),
        };
        let is_better = |score: f64| self.progress.best.is_none_or(|best| score < best.score);
        let is_best = is_whole && scores.ged.is_some_and(is_better);
        self.progress.unimproved = if is_best { 0 } else { self.progress.unimproved + u32::from(is_whole) };
        if let Some(score) = scores.ged.filter(|_| is_best) {
            let best = BestValidation { step, score };
            if self.outputs.logs.is_some() {
                self.outputs.checkpoints.name_best(&best)?;
            }
            self.progress.best = Some(best);
        }
        self.emit(Event::Validated { step, scores, is_best }, callback)?;
        Ok(true)
    }

    fn save(&mut self, callback: &mut dyn Callback) -> Result<()> {
        self.saved = Instant::now();
        if let Some(logs) = &self.outputs.logs {
            logs.sync()?;
            let path = self.outputs.checkpoints.save(&self.progress, &mut self.trainer)?;
            callback.on_event(&Event::Saved { step: self.progress.step, path });
        }
        Ok(())
    }

    /// Logs an event that has a row, and passes it on.
    fn emit(&mut self, event: Event, callback: &mut dyn Callback) -> Result<()> {
        if let Some(logs) = &mut self.outputs.logs {
            logs.on_event(&event)?;
        }
        callback.on_event(&event);
        Ok(())
    }
}

/// Refuses ranks that would compute in different ways: they would wait for each other at different places.
fn check_alike(comm: &dyn Communicator, device: Device, precision: Precision) -> Result<()> {
    let all = all_gather_values(comm, &(device != Device::Cpu, precision))?;
    let words = |&(is_gpu, precision): &(bool, Precision)| {
        format!("{} in {precision:?}", if is_gpu { "a GPU" } else { "CPUs" })
    };
    match all.iter().find(|other| **other != all[0]) {
        None => Ok(()),
        Some(other) => {
            let (first, other) = (words(&all[0]), words(other));
            let reason = format!(
                "the first computes on {first} and another on {other}; give all the same --device and \
                 training.precision"
            );
            Err(NnError::communicator(reason))
        }
    }
}

/// The newest checkpoint, which is the same for all ranks.
fn newest(checkpoints: &Checkpoints, comm: Option<&dyn Communicator>) -> Result<NewestCheckpoint> {
    let Some(comm) = comm else { return checkpoints.newest() };
    let step =
        |newest: &NewestCheckpoint| newest.checkpoint.as_ref().map(|checkpoint| checkpoint.progress.step);
    let bytes = |newest: &NewestCheckpoint| format!("{:?}", step(newest)).into_bytes();
    if comm.rank() == 0 {
        let newest = checkpoints.newest()?;
        comm.all_gather(&bytes(&newest))?;
        return Ok(newest);
    }
    // The first rank has put the folder in order when it tells what it found.
    let told = comm.all_gather(&[])?;
    let newest = checkpoints.newest()?;
    if told.first() != Some(&bytes(&newest)) {
        let reason = "this rank sees another checkpoint than the first one; put the run on a file system that all share";
        return Err(NnError::communicator(reason));
    }
    Ok(newest)
}

/// The refusal of a run whose checkpoints are all damaged.
fn lost(run: &Path, newest: &DamagedCheckpoint, count: usize) -> NnError {
    let reason = format!(
        "none of its {count} checkpoints is what was saved ({}); put back a copy of one, or train again with \
         `ssn train {} --out` and a new folder",
        newest.reason,
        run.join(CONFIG).display()
    );
    NnError::file(run, reason)
}
