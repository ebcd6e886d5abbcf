//! Training: a run from a config or a dataset, or the rest of one that was stopped.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use ssn_args::{BadCases, TrainConfig};
use ssn_core::Phase;
use ssn_data::text::{counted, grouped, shell_quoted, spoken, without_controls};
use ssn_data::{DeviceChoice, FindingKind, LoaderConfig, Severity, Split, check_until};
use ssn_io::{Limits, read_bytes, write_atomically};
use ssn_nn::NnError;
use ssn_nn::communicator::{Communicator, is_root};
use ssn_nn::{HeadConfig, ModelConfig};
use ssn_report::training_picture;
use ssn_train::checkpoint::{AverageMeter, BestValidation};
use ssn_train::run::{
    Callback, ConfigSources, Event, Override, ResolvedRun, Run, RunConfig, RunFolder, RunInputs, RunPreset,
    StopReason, Throughput, resolve,
};
use tch::Device;

use crate::device::{cores, device};
use crate::error::{Error, ErrorKind, Result};
use crate::text::command_line;
use ssn_core::Control;

/// Threads that prepare batches for the CPU, which is busy itself.
const WORKERS: usize = 2;
/// Threads that prepare batches for a GPU; more have not been needed.
const MOST_WORKERS: usize = 16;

/// The command of a training that a config file or a run names, for messages.
pub(crate) fn command(config: &TrainConfig) -> String {
    let option = |name: &'static str, value: Option<String>| {
        value.into_iter().flat_map(move |value| [name.to_owned(), value])
    };
    let text = |path: &PathBuf| path.display().to_string();
    let mut words = vec!["train".to_owned()];
    match &config.resume {
        Some(run) => words.extend(option("--resume", Some(text(run)))),
        None => {
            words.extend(config.config.as_ref().map(text));
            words.extend(option("--out", Some(text(&config.out))));
            words.extend(option("--seed", config.seed.map(|seed| seed.to_string())));
            words.extend(option("--preset", config.preset.clone()));
            words.extend(config.settings.iter().flat_map(|setting| option("--set", Some(setting.clone()))));
        }
    }
    words.extend(option("--device", Some(config.device.to_string())));
    words.extend(option("--workers", config.workers.map(|workers| workers.to_string())));
    command_line(&words)
}

/// What training came to; [`TrainedRun::outcome`] makes an error of a run that did not come to its end.
#[derive(Debug)]
#[must_use = "a run that was stopped is no error; `outcome` makes it one"]
pub struct TrainedRun {
    /// The folder of the run.
    pub path: PathBuf,
    /// How it ended.
    pub ended: StopReason,
    /// Steps done.
    pub steps: u64,
    /// The best validation.
    pub best: Option<BestValidation>,
    /// How fast it was; nothing if too few steps were done now.
    pub pace: Option<Throughput>,
}

/// Trains a network, or resumes a stopped run.
///
/// A training that is stopped by the flag of `control`, or whose time is up, saves and returns `Ok`: [`TrainedRun::ended`] has
/// the reason, and [`TrainedRun::outcome`] makes an error of it. [`TrainConfig::resume`] continues it.
pub fn train(config: &TrainConfig, control: Control<'_>) -> Result<TrainedRun> {
    Training::from_config(config).start(control)
}

/// Receives the events of a run.
type Listener<'a> = Box<dyn FnMut(&Event) + 'a>;

/// A training that can be watched event by event, of a config in code or of the arguments of `ssn train`.
///
/// ```no_run
/// use ssn::prelude::*;
/// use ssn::training::run::{Event, RunConfig, RunPreset};
///
/// let mut config = RunConfig::for_data("dataset", RunPreset::General)?;
/// config.training.steps = 2_000;
/// let trained = Training::new(config, "run")
///     .on_event(|event| {
///         if let Event::Step(step) = event {
///             println!("{} {}", step.step, step.loss);
///         }
///     })
///     .start(Control::default())?;
/// println!("{:?} after {} steps", trained.ended, trained.steps);
/// # Ok::<(), ssn::Error>(())
/// ```
pub struct Training<'a> {
    arguments: TrainConfig,
    /// The config of a new run, if it does not come from the arguments.
    typed: Option<RunConfig>,
    on_event: Option<Listener<'a>>,
    ranks: Option<Arc<dyn Communicator>>,
}

impl<'a> Training<'a> {
    /// A new run in `folder`, which must be empty or missing.
    pub fn new(config: RunConfig, folder: impl Into<PathBuf>) -> Self {
        let arguments = TrainConfig { out: folder.into(), ..TrainConfig::from_file("", "") };
        Self { arguments, typed: Some(config), on_event: None, ranks: None }
    }

    /// The rest of the run in `folder`.
    pub fn resume(folder: impl Into<PathBuf>) -> Self {
        Self { arguments: TrainConfig::resume(folder), typed: None, on_event: None, ranks: None }
    }

    /// The training of the arguments of `ssn train`.
    pub fn from_config(config: &TrainConfig) -> Self {
        Self { arguments: config.clone(), typed: None, on_event: None, ranks: None }
    }

    /// Sets the device.
    pub fn device(mut self, device: DeviceChoice) -> Self {
        self.arguments.device = device;
        self
    }

    /// Sets the number of threads that prepare batches; they change no result.
    pub fn workers(mut self, workers: usize) -> Self {
        self.arguments.workers = Some(workers);
        self
    }

    /// Trains as one of several ranks, of which the first writes and reports.
    pub fn ranks(mut self, ranks: Option<Arc<dyn Communicator>>) -> Self {
        self.ranks = ranks;
        self
    }

    /// Saves and ends after this time.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.arguments.time_limit = Some(limit);
        self
    }

    /// Sets what happens to cases that cannot be used.
    pub fn bad_cases(mut self, bad_cases: BadCases) -> Self {
        self.arguments.bad_cases = bad_cases;
        self
    }

    /// Calls `listener` with every event, on this thread; over ranks, on the first of them.
    pub fn on_event(mut self, listener: impl FnMut(&Event) + 'a) -> Self {
        self.on_event = Some(Box::new(listener));
        self
    }

    /// Trains to the end, until `control` stops it, or until its time is up.
    pub fn start(self, control: Control<'_>) -> Result<TrainedRun> {
        run(self, control)
    }
}

fn run(training: Training<'_>, control: Control<'_>) -> Result<TrainedRun> {
    let Training { arguments, typed, on_event, ranks } = training;
    let config = &arguments;
    let begin = Instant::now();
    // Before anything is written.
    let (device, gpu) = device(config.device, control)?;
    let cores = cores(ranks.as_deref())?;
    let is_root = is_root(ranks.as_ref());
    let (folder, resolved) = match (&ranks, &config.resume) {
        (Some(ranks), _) if !is_root => joined(config, &**ranks)?,
        (_, Some(path)) => resumed(path, config)?,
        (_, None) => {
            let ranks = ranks.as_ref().map_or(1, |ranks| ranks.world_size());
            fresh(config, typed, control, device, ranks)?
        }
    };
    let path = folder.path().to_owned();
    let change = if is_root { kept_inputs(&path, &resolved, config, control)? } else { None };
    let mut log = match is_root {
        true => RunLog { listener: on_event, ..RunLog::new(&path, &resolved, control)? },
        false => RunLog::silent(control),
    };
    if let Some(change) = change {
        log.tell(&format!("goes on although {change}"));
    }
    if let Some(ranks) = ranks.as_ref().filter(|_| is_root) {
        // The others open what is there now.
        ranks.all_gather(&[])?;
        let (items, count) = (resolved.config.batches.batch_size, ranks.world_size());
        let norms =
            if resolved.config.syncs_batch_norm(count) { "whole batches" } else { "each rank's items" };
        log.tell(&format!(
            "trains over {count} ranks, which share batches of {items} items; batch norm is over {norms}; threads of \
             this rank: {}",
            tch::get_num_threads()
        ));
    }
    log.tell(&match &gpu {
        Some(gpu) => format!("trains on {} with {:.0} GiB", gpu.name, gpu.total as f64 / f64::from(1 << 30)),
        None => format!("trains on the CPU with {}", counted(tch::get_num_threads() as usize, "thread")),
    });
    let network = network(&resolved.model);
    let run = Run::start(folder, resolved, device, ranks, &mut log);
    let mut run = run.map_err(|error| log.failed(error))?;
    if let Some(way) = run.all_reduce_backend() {
        log.tell(&format!("GPUs sum gradients through {way}"));
    }
    if config.resume.is_some() && run.steps_done() == 0 {
        log.tell("no checkpoint was saved yet: begins at step 0");
    }
    log.begin(&run, &network, gpu.is_some());
    let workers = if gpu.is_some() { cores.clamp(WORKERS, MOST_WORKERS) } else { WORKERS };
    let workers = config.workers.unwrap_or(workers);
    let loader = LoaderConfig { workers, ..LoaderConfig::default() };
    // Opening and checking the dataset count as well.
    let limit = config.time_limit.map(|limit| limit.saturating_sub(begin.elapsed()));
    let ended = run.train(&loader, limit, &mut log);
    let ended = ended.map_err(|error| log.failed(error))?;
    let pace = run.throughput();
    if let Some(pace) = pace {
        log.tell(&pace.to_string());
    }
    if let Some(line) = verdict(ended, &run) {
        log.tell(&line);
    }
    log.write(&format!("ended: {ended:?} after step {}", run.steps_done()));
    Ok(TrainedRun { path, ended, steps: run.steps_done(), best: run.progress().best, pace })
}

/// Whether more steps may help, by the validations of a run that is finished.
fn verdict(ended: StopReason, run: &Run) -> Option<String> {
    let best = run.progress().best.filter(|_| ended == StopReason::Finished)?;
    let training = &run.config().training;
    let is_last = best.step + training.validate_every > training.steps;
    Some(match is_last {
        true => format!(
            "GED² on the validation set was still improving at the end ({:.3}): more steps may help (training.steps)",
            best.score
        ),
        false => format!(
            "GED² on the validation set was lowest after step {} of {} ({:.3}): more steps would hardly help",
            best.step, training.steps, best.score
        ),
    })
}

impl TrainedRun {
    /// Whether the run is finished.
    ///
    /// # Errors
    /// What to do next, if it was stopped or gave up.
    pub fn outcome(&self) -> Result<()> {
        outcome(self.ended, &self.path)
    }
}

fn outcome(ended: StopReason, run: &Path) -> Result<()> {
    let advice = format!("go on with `ssn train --resume {}`", shell_quoted(&run.display().to_string()));
    match ended {
        StopReason::Finished | StopReason::Early => Ok(()),
        StopReason::Stopped => Err(Error::stopped().advise(advice)),
        StopReason::OutOfTime => Err(Error::new(ErrorKind::Stopped, format!("the time is up; {advice}"))),
        StopReason::NonFinite => Err(Error::new(
            ErrorKind::NonFinite,
            format!(
                "too many steps in a row had a loss or a gradient that is not finite, and none of them was applied; \
                 {} tells which cases they were made of. If the cases are wrong, repair them and {advice} (with `--allow-changed-data`); if not, \
                 lower optimizer.learning_rate or set loss.max_gradient_norm in a new run",
                run.join("incidents").display()
            ),
        )),
    }
}

/// Makes sure that a run goes on with the data that it began with; gives what changed if that is allowed.
fn kept_inputs(
    run: &Path,
    resolved: &ResolvedRun,
    config: &TrainConfig,
    control: Control<'_>,
) -> Result<Option<String>> {
    let inputs = RunInputs::of(resolved, run, control)?;
    Ok(inputs.keep(run, config.allow_changed_data)?)
}

/// A run that goes on, with its dataset where it was or where it is now.
fn resumed(path: &Path, config: &TrainConfig) -> Result<(RunFolder, ResolvedRun)> {
    let folder = RunFolder::open(path)?;
    folder.change(&overrides(config)?)?;
    let resolved = folder.resolved(config.data.as_deref())?;
    Ok((folder, resolved))
}

/// A run that the first rank has begun or opened, for another one.
fn joined(config: &TrainConfig, ranks: &dyn Communicator) -> Result<(RunFolder, ResolvedRun)> {
    ranks.all_gather(&[])?;
    let folder = RunFolder::join(config.resume.as_deref().unwrap_or(&config.out))?;
    let resolved = folder.resolved(config.data.as_deref().filter(|_| config.resume.is_some()))?;
    Ok((folder, resolved))
}

/// A new run, on a dataset that was checked.
fn fresh(
    config: &TrainConfig,
    typed: Option<RunConfig>,
    control: Control<'_>,
    device: Device,
    ranks: usize,
) -> Result<(RunFolder, ResolvedRun)> {
    RunFolder::is_free(&config.out)?;
    let has_file = typed.is_none() && config.config.is_some();
    let run_config = match typed {
        Some(mut typed) => {
            typed.check()?;
            if typed.data.split.file == Path::new(SPLIT) {
                typed.data.split.file = config.out.join(SPLIT);
            }
            typed
        }
        None => {
            let layers = layers(config, control)?;
            let run_config = layers.config()?;
            for sentence in layers.without_effect(&run_config) {
                control.warn(&sentence);
            }
            for sentence in layers.shortened(&run_config) {
                control.message(&sentence);
            }
            run_config
        }
    };
    if let Some(precision) = run_config.training.precision {
        precision.check(device)?;
    }
    let mut resolved = resolve(run_config)?;
    resolved.check(ranks)?;
    if config.bad_cases != BadCases::Unchecked {
        let bad = check_dataset(&resolved, config.bad_cases, control)?;
        if !bad.is_empty() {
            let mut run_config = resolved.config;
            run_config.data.exclude.extend(bad);
            resolved = resolve(run_config)?;
        }
    }
    if has_file {
        // Other runs with this config share the split.
        resolved.config.data.split.keep_parts(&resolved.dataset)?;
    }
    let folder = RunFolder::create(&config.out, &resolved)?;
    Ok((folder, resolved))
}

/// Returns the changed settings.
fn overrides(config: &TrainConfig) -> Result<Vec<Override>> {
    let parse = |written: &String| {
        Override::parse(written).map_err(|reason| Error::usage(format!("--set {written}: {reason}")))
    };
    config.settings.iter().map(parse).collect()
}

/// What the config is put together from.
fn layers(config: &TrainConfig, control: Control<'_>) -> Result<ConfigSources> {
    let preset = config.preset.as_deref().map(RunPreset::parse).transpose().map_err(Error::usage)?;
    let mut settings = overrides(config)?;
    if let Some(seed) = config.seed {
        settings.push(Override::parse(&format!("training.seed={seed}")).map_err(Error::usage)?);
    }
    if let Some(fold) = config.fold {
        settings.push(Override::parse(&format!("data.split.fold={fold}")).map_err(Error::usage)?);
    }
    let file = match (&config.config, &config.data) {
        (Some(path), _) => {
            refuse_other_than_config(path)?;
            let bytes = read_bytes(path, &Limits::default()).map_err(Error::mismatch)?;
            let text = String::from_utf8(bytes)
                .map_err(|_| Error::usage(format!("{} is no text; name a config file", path.display())))?;
            Some((path.clone(), text))
        }
        (None, Some(data)) => {
            // The run keeps the split; a split.toml that happens to lie here belongs to something else.
            let split = format!("data.split.file={}", config.out.join(SPLIT).display());
            settings.push(Override::parse(&split).map_err(Error::usage)?);
            ConfigSources::for_data(data, preset)?.file
        }
        (None, None) => None,
    };
    let mut layers = ConfigSources { preset, file, overrides: settings };
    if config.fold.is_some() && !layers.sets("data.split.folds") {
        // As many as nnU-Net has.
        layers.overrides.push(Override::parse("data.split.folds=5").map_err(Error::usage)?);
    }
    if config.config.is_some() && config.preset.is_some() {
        let sections = layers.learning_sections();
        if !sections.is_empty() {
            let sections = sections.join(", ");
            control.message(&format!("note: the config's own {sections} win over those of the preset"));
        }
    }
    Ok(layers)
}

/// What to do where a dataset or nothing is named in the place of a config.
fn refuse_other_than_config(path: &Path) -> Result<()> {
    let name = path.display();
    let message = if path.is_dir() {
        format!(
            "{name} is a folder; train on a dataset with `ssn train --data {name}`, or write a config for it with \
             `ssn init {name}` and name that"
        )
    } else if !path.exists() {
        format!("there is no file {name}; `ssn init FOLDER` writes a config for the dataset in FOLDER")
    } else {
        return Ok(());
    };
    Err(Error::usage(message))
}

/// Checks the dataset before training, and returns the cases to leave out: learning from a dataset with errors would hide
/// them in a model.
fn check_dataset(resolved: &ResolvedRun, bad_cases: BadCases, control: Control<'_>) -> Result<Vec<String>> {
    let report = check_until(&resolved.dataset, Some(&resolved.parts), control)?;
    if report.errors == 0 {
        for finding in report.findings.iter().filter(|finding| finding.severity == Severity::Warning) {
            let place = finding.case.as_deref().unwrap_or("the dataset");
            control.warn(&format!("{place}: {}", finding.reason));
        }
        return Ok(vec![]);
    }
    let errors = || report.findings.iter().filter(|finding| finding.severity == Severity::Error);
    let bad: BTreeSet<String> = errors().filter_map(|finding| finding.case.clone()).collect();
    if errors().any(|finding| finding.kind == FindingKind::Memory) {
        let message = format!(
            "there is too little memory for some files; end other programs, or use a larger machine\n{}",
            report.to_string().trim_end()
        );
        return Err(Error::new(ErrorKind::OutOfMemory, message));
    }
    let is_of_cases =
        errors().all(|finding| finding.case.is_some() && finding.kind != FindingKind::DuplicateId);
    if bad_cases == BadCases::LeaveOut && is_of_cases && bad.len() < report.cases {
        let listed = bad.iter().cloned().collect::<Vec<_>>().join(", ");
        control.message(report.to_string().trim_end());
        control.warn(&format!("left out of training, validation and test: {listed}"));
        return Ok(bad.into_iter().collect());
    }
    let advice = match is_of_cases {
        true => "repair them, name the cases in data.exclude, or train without them with --skip-check",
        false => "repair them",
    };
    let message = format!("the dataset has problems; {advice}\n{}", report.to_string().trim_end());
    Err(Error::new(ErrorKind::ProblemsFound, message))
}

/// Checks what a config says of network, loss and training, and that it fits the dataset.
///
/// # Errors
/// The first thing that is wrong.
pub fn check_config(path: &Path) -> Result<()> {
    let config = TrainConfig::from_file(path, "");
    resolve(layers(&config, Control::default())?.config()?)?;
    Ok(())
}

/// The name of the file of a split, unless a config names another.
const SPLIT: &str = "split.toml";
const LOG: &str = "log.txt";
/// The curves of the run, drawn again after each validation.
const PICTURE: &str = "progress.png";

/// Steps on a GPU before the time of a step is measured for an estimate.
const WARM_UP_GPU: u64 = 30;
/// Seconds of steps after which a run says how long it will take.
const ESTIMATE_AFTER: f64 = 5.0;
/// Seconds from which on a run on CPUs is told of something smaller: two hours.
const LONG_RUN: f64 = 7200.0;

/// What is known of the pace of a run before it says how long it will take.
struct Estimate {
    /// Steps to go when the program began.
    left: u64,
    has_gpu: bool,
    /// Steps since then.
    seen: u64,
    /// When measuring began, and after how many steps.
    since: Option<(Instant, u64)>,
}

/// The network in words.
fn network(model: &ModelConfig) -> String {
    let backbone = model.backbone.describe();
    let head = match model.head {
        HeadConfig::Stochastic(head) => format!("low-rank normal of rank {}", head.rank),
        head => head.name().to_owned(),
    };
    format!("{backbone}, {head}")
}

/// Reports a run to the caller and to `log.txt`.
struct RunLog<'a> {
    control: Control<'a>,
    /// From the first step on.
    training: Option<Phase<'a>>,
    /// While one goes on.
    validation: Option<Phase<'a>>,
    /// The folder of the run, and its log; nothing for a rank that is not the first.
    run: Option<PathBuf>,
    log: Option<File>,
    /// Until the duration was told.
    estimate: Option<Estimate>,
    /// The steps since the last row.
    interval: AverageMeter,
    /// Listener of the caller.
    listener: Option<Listener<'a>>,
}

impl<'a> RunLog<'a> {
    /// Opens the log and says what is about to be trained.
    fn new(run: &Path, resolved: &ResolvedRun, control: Control<'a>) -> Result<Self> {
        let path = run.join(LOG);
        let log = ssn_io::open_own(&path, true);
        let log = log.map_err(|error| {
            Error::new(ErrorKind::Io, format!("cannot write {}: {error}", path.display()))
        })?;
        let mut this = Self { run: Some(run.to_owned()), log: Some(log), ..Self::silent(control) };
        let count = |split| resolved.parts.iter().filter(|part| **part == split).count();
        let [train, validation, test] = Split::ALL.map(count);
        let command: Vec<String> = std::env::args().collect();
        this.write(&format!("ssn {}: {}", env!("CARGO_PKG_VERSION"), command.join(" ")));
        this.tell(&format!(
            "{} cases for training, {} for validation, {} for test; run folder {}",
            train,
            validation,
            test,
            run.display()
        ));
        if validation == 0 && resolved.config.training.validate_every > 0 {
            this.tell("no case is for validation: there is no best checkpoint, and patience has no effect");
        }
        Ok(this)
    }

    /// Only looks whether to stop: another rank reports the run.
    fn silent(control: Control<'a>) -> Self {
        let interval = AverageMeter::default();
        Self {
            control,
            training: None,
            validation: None,
            run: None,
            log: None,
            estimate: None,
            interval,
            listener: None,
        }
    }

    /// Progress begins where the run stands.
    fn begin(&mut self, run: &Run, network: &str, has_gpu: bool) {
        let (steps, done, parameters) = (run.config().training.steps, run.steps_done(), run.parameters());
        self.tell(&format!("{network}, {} parameters; {} steps", grouped(parameters), grouped(steps as i64)));
        if self.log.is_some() {
            let [steps, done] = [steps, done].map(|count| count as usize);
            self.training = Some(Phase::resume(self.control.progress, "training", steps, "steps", done));
        }
        self.estimate = Some(Estimate { left: steps.saturating_sub(done), has_gpu, seen: 0, since: None });
    }

    /// Shows that a step was done.
    fn advance(&mut self) {
        let means = self.interval.means();
        let loss = means.loss.map_or(String::new(), |loss| format!("loss {loss:.4}"));
        let samples = means.ess.map_or(String::new(), |samples| format!(", ESS {samples:.1}"));
        if let Some(phase) = &self.training {
            phase.advance(1, &(loss + &samples));
        }
        self.estimate();
    }

    /// Tells once, after some steps, how long the run will take.
    fn estimate(&mut self) {
        let Some(estimate) = &mut self.estimate else { return };
        estimate.seen += 1;
        let Some(since) = estimate.since else {
            // The first steps choose convolutions and fill queues.
            let is_warm = estimate.seen >= if estimate.has_gpu { WARM_UP_GPU } else { 1 };
            estimate.since = is_warm.then(|| (Instant::now(), estimate.seen));
            return;
        };
        let ((begin, before), seen) = (since, estimate.seen);
        let (seconds, steps) = (begin.elapsed().as_secs_f64(), seen - before);
        if seconds < ESTIMATE_AFTER {
            return;
        }
        let (step, has_gpu) = (seconds / steps as f64, estimate.has_gpu);
        let left = step * estimate.left.saturating_sub(seen) as f64;
        self.estimate = None;
        let smaller = if !has_gpu && left > LONG_RUN {
            "; `--preset small` is a small network with few steps, for a first look"
        } else {
            ""
        };
        self.tell(&format!("a step takes {}: about {} to go{smaller}", spoken(step), spoken(left)));
    }

    /// Draws the curves of the run so far; a picture that cannot be made must not end a run.
    fn draw(&mut self) {
        let Some(run) = self.run.as_deref() else { return };
        let picture = training_picture(run).map_err(|error| error.to_string()).and_then(|png| {
            let written = write_atomically(&run.join(PICTURE), |out| out.write_all(&png));
            written.map_err(|error| error.to_string())
        });
        if let Err(reason) = picture {
            self.write(&format!("{PICTURE} was not drawn: {reason}"));
        }
    }

    /// Writes a line to the log; a log that cannot be written must not end a run.
    fn write(&mut self, line: &str) {
        if let Some(log) = &mut self.log {
            // In one write, so that a kill leaves no half of a line. The time is as `2026-11-15T08:00:00Z`.
            let _ = log.write_all(format!("{:.0} {}\n", Timestamp::now(), without_controls(line)).as_bytes());
        }
    }

    /// Writes an error to the log in full, and returns it for the user.
    fn failed(&mut self, error: NnError) -> Error {
        self.write(&format!("failed: {error}"));
        error.into()
    }

    /// Shows a warning, also where messages are not wanted, and writes it to the log.
    fn warn(&mut self, line: &str) {
        if self.log.is_some() {
            self.control.warn(line);
        }
        self.write(line);
    }

    /// Writes a line for the user and to the log.
    fn tell(&mut self, line: &str) {
        if self.log.is_some() {
            self.control.message(line);
        }
        self.write(line);
    }
}

impl Callback for RunLog<'_> {
    fn should_stop(&self) -> bool {
        self.control.should_stop()
    }

    fn on_event(&mut self, event: &Event) {
        match event {
            Event::PassedOver { reason, aside } => self.tell(&format!(
                "passed over a damaged checkpoint, which is now {}: {reason}",
                aside.display()
            )),
            Event::Resumed { step } => self.tell(&format!("goes on after step {step}")),
            Event::Step(report) => {
                self.interval.add(report);
                self.advance();
            }
            Event::Incident { reason, file, .. } => {
                self.tell(&format!("{reason}; see {}", file.display()));
                self.advance();
            }
            Event::Row { .. } => self.interval = AverageMeter::default(),
            &Event::Validating { done, total } if self.log.is_some() => {
                let begin = || self.control.phase("validating", total, "cases");
                self.validation.get_or_insert_with(begin).reached(done);
            }
            Event::Validated { step, scores: validation, is_best } => {
                self.validation = None;
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
                let best = if *is_best { ", the best so far" } else { "" };
                self.tell(&format!("step {step}: {}{best}", parts.join(", ")));
                self.draw();
            }
            Event::Unscored { step, reason } => {
                self.validation = None;
                self.warn(&format!("step {step}: no scores: {reason}"));
            }
            Event::Saved { path, .. } => self.write(&format!("saved {}", path.display())),
            _ => {}
        }
        if let Some(listener) = &mut self.listener {
            listener(event);
        }
    }
}
