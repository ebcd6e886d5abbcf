//! `ssn train`: a run from a config or a dataset, or the rest of one that was stopped.

mod console;
mod start;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use ssn_cli::args::{Global, TrainArgs};
use ssn_cli::exit::print;
use ssn_cli::{Exit, Failure};
use ssn_data::LoaderConfig;
use ssn_nn::communicator::{Communicator, is_root};
use ssn_train::checkpoint::BestValidation;
use ssn_train::run::{Run, StopReason, Throughput};

use crate::cores::cores;
use crate::device::device;
use crate::failure::{failure, of_panic};
use crate::ranks::World;
use crate::signals;
use console::Console;

/// Threads that prepare batches for the processors, which are busy themselves.
const WORKERS: usize = 2;
/// Threads that prepare batches for a GPU; more have not been needed.
const MOST_WORKERS: usize = 16;

/// Runs the verb.
pub fn run(args: &TrainArgs, global: &Global) -> Result<Exit, Failure> {
    let begin = Instant::now();
    let world = World::join()?;
    let ranks = world.as_ref().map(World::ranks);
    let is_root = is_root(ranks.as_ref());
    // A rank that has panicked ends all while it still belongs to them; the others would wait for it.
    let trained = catch_unwind(AssertUnwindSafe(|| train(args, global, ranks)));
    let trained = trained.unwrap_or_else(|panic| Err(of_panic(&*panic)));
    let Trained { path, ended, steps, best, .. } = match (trained, &world) {
        (Err(failure), Some(world)) => world.end_all(&failure),
        (trained, _) => trained?,
    };
    if !is_root {
        // The first rank tells; all end with its code.
        return Ok(outcome(ended, &path).unwrap_or_else(|failure| failure.exit));
    }
    let text = if global.json {
        let seconds = begin.elapsed().as_secs_f64();
        let best = best.map(|best| json!({ "step": best.step, "ged": best.score }));
        let ended = word(ended);
        format!(
            "{:#}\n",
            json!({ "run": path, "ended": ended, "steps": steps, "best": best, "seconds": seconds })
        )
    } else {
        let mut text = format!("run         {}\nsteps       {steps}\n", path.display());
        if let Some(best) = best {
            text += &format!("best        step {}, GED² {:.4}\n", best.step, best.score);
        }
        text
    };
    print(&text)?;
    outcome(ended, &path)
}

/// What training came to.
pub struct Trained {
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

/// Trains as far as it goes; alone, or as one of several ranks, of which the first writes and tells.
pub fn train(
    args: &TrainArgs,
    global: &Global,
    ranks: Option<Arc<dyn Communicator>>,
) -> Result<Trained, Failure> {
    let begin = Instant::now();
    let stop = signals::stop_flag().map_err(|error| Failure::new(Exit::Internal, error))?;
    // Before anything is written.
    let (device, gpu) = device(args.device)?;
    let cores = cores(ranks.as_deref())?;
    let is_root = is_root(ranks.as_ref());
    let (folder, resolved) = match (&ranks, &args.resume) {
        (Some(ranks), _) if !is_root => start::joined(args, &**ranks)?,
        (_, Some(path)) => start::resumed(path, args.data.as_deref())?,
        (_, None) => start::fresh(args, global, device)?,
    };
    let path = folder.path().to_owned();
    let mut console = match is_root {
        true => Console::new(&path, &resolved, stop, global.quiet)?,
        false => Console::silent(stop),
    };
    if let Some(ranks) = ranks.as_ref().filter(|_| is_root) {
        // The others open what is there now.
        ranks.all_gather(&[]).map_err(failure)?;
        let (items, count) = (resolved.config.batches.batch_size, ranks.world_size());
        let norms =
            if resolved.config.syncs_batch_norm(count) { "whole batches" } else { "each rank's items" };
        console.tell(&format!(
            "trains over {count} ranks, which share batches of {items} items; batch norm is over {norms}; threads of \
             this rank: {}",
            tch::get_num_threads()
        ));
    }
    if let Some(gpu) = &gpu {
        console.tell(&format!(
            "trains on {} with {:.0} GiB",
            gpu.name,
            gpu.total as f64 / f64::from(1 << 30)
        ));
    }
    let mut run = Run::start(folder, resolved, device, ranks, &mut console).map_err(failure)?;
    if let Some(way) = run.all_reduce_backend() {
        console.tell(&format!("GPUs sum gradients through {way}"));
    }
    if args.resume.is_some() && run.steps_done() == 0 {
        console.tell("no checkpoint was saved yet: begins at step 0");
    }
    console.begin(&run);
    let workers = if gpu.is_some() { cores.clamp(WORKERS, MOST_WORKERS) } else { WORKERS };
    let workers = args.workers.map_or(workers, usize::from);
    let loader = LoaderConfig { workers, ..LoaderConfig::default() };
    // Opening and checking the dataset count as well; a limit beyond all time is none.
    let limit = args.time_limit.and_then(|minutes| Duration::try_from_secs_f64(60.0 * minutes).ok());
    let limit = limit.map(|limit| limit.saturating_sub(begin.elapsed()));
    let ended = run.train(&loader, limit, &mut console);
    console.finish();
    let ended = ended.map_err(|error| {
        console.log(&format!("failed: {error}"));
        failure(error)
    })?;
    let pace = run.throughput();
    if let Some(pace) = pace {
        console.tell(&pace.to_string());
    }
    console.log(&format!("ended: {ended:?} after step {}", run.steps_done()));
    Ok(Trained { path, ended, steps: run.steps_done(), best: run.progress().best, pace })
}

/// The exit code of a run, and what to do next.
pub fn outcome(ended: StopReason, run: &Path) -> Result<Exit, Failure> {
    let advice = format!("go on with: ssn train --resume {}", run.display());
    match ended {
        StopReason::Finished | StopReason::Early => Ok(Exit::Ok),
        StopReason::Stopped => Err(Failure::new(Exit::Stopped, format!("stopped on request; {advice}"))),
        StopReason::OutOfTime => Err(Failure::new(Exit::Stopped, format!("the time is up; {advice}"))),
        StopReason::NonFinite => Err(Failure::new(
            Exit::NonFinite,
            format!(
                "too many steps in a row had a loss or a gradient that is not finite, and none of them was applied; \
                 {} tells which cases they were made of. If the cases are wrong, repair them and {advice}; if not, \
                 lower optimizer.learning_rate or set loss.max_gradient_norm in a new run",
                run.join("incidents").display()
            ),
        )),
    }
}

/// How a run ended, in JSON.
fn word(ended: StopReason) -> &'static str {
    match ended {
        StopReason::Finished => "finished",
        StopReason::Early => "early",
        StopReason::Stopped => "stopped",
        StopReason::OutOfTime => "out-of-time",
        StopReason::NonFinite => "non-finite",
    }
}
