//! `ssn toy`: trains both models for every seed, prints their scores and draws what they learnt.

mod figure;
mod summary;

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

use ssn_cli::args::{Global, Precision, ToyArgs};
use ssn_cli::datasets::check_free_or;
use ssn_cli::exit::{json, print};
use ssn_cli::progress::Progress;
use ssn_cli::{Exit, Failure};
use ssn_eval::figures::png_from_svg;
use ssn_io::write_atomically;
use ssn_train::TrainError;
use ssn_train::toy::{ToyConfig, ToyModel, ToyResult, train};

use figure::figure;
use summary::{name, summarize, table};

/// Pixels of the PNG per pixel of the SVG.
const PNG_SCALE: f32 = 2.0;
/// Steps between two updates of the progress bar.
const REPORT_EVERY: usize = 100;
/// In the order in which tables and figures show them, as in the paper.
const MODELS: [ToyModel; 2] = [ToyModel::Diagonal, ToyModel::LowRank];

/// Runs the verb.
pub fn run(args: &ToyArgs, global: &Global) -> Result<Exit, Failure> {
    if args.pretrain >= args.steps {
        let (pretrain, steps) = (args.pretrain, args.steps);
        let message =
            format!("--pretrain {pretrain} leaves nothing of --steps {steps}; lower it or raise the steps");
        return Err(Failure::new(Exit::Usage, message));
    }
    if args.seed.checked_add(u64::from(args.seeds)).is_none() {
        let message = format!("--seed {} leaves no room for --seeds {}; lower it", args.seed, args.seeds);
        return Err(Failure::new(Exit::Usage, message));
    }
    let files = ["toy.svg", "toy.png", "toy.json"].map(|name| args.out.join(name));
    prepare_folder(&args.out, &files, args.overwrite)?;

    let start = Instant::now();
    let outcomes = train_all(args, global.quiet)?;
    let summary = summarize(args, &outcomes, start.elapsed().as_secs_f64());
    let json = json(&summary)?;
    let svg = figure(args, &summary, &outcomes)?;
    let png = png_from_svg(&svg, PNG_SCALE).map_err(|e| Failure::new(Exit::Internal, e))?;
    for (path, bytes) in files.iter().zip([svg.as_bytes(), &png, json.as_bytes()]) {
        write_atomically(path, |out| out.write_all(bytes)).map_err(|e| Failure::new(Exit::Io, e))?;
    }

    let text =
        if global.json { json } else { table(args, &summary) + &format!("Figure: {}\n", files[1].display()) };
    print(&text)
}

/// Creates the folder and makes sure that nothing is lost in it.
fn prepare_folder(folder: &Path, files: &[PathBuf], overwrite: bool) -> Result<(), Failure> {
    for path in files {
        check_free_or(path, overwrite, "choose another folder with --out")?;
    }
    fs::create_dir_all(folder)
        .map_err(|e| Failure::new(Exit::Io, format!("cannot create the folder {}: {e}", folder.display())))
}

/// Trains every model with every seed, as many at once as there are cores. Sorted by model, then seed.
fn train_all(args: &ToyArgs, quiet: bool) -> Result<Vec<ToyResult>, Failure> {
    let seeds = args.seed..args.seed + u64::from(args.seeds);
    let jobs: VecDeque<_> =
        MODELS.iter().flat_map(|&model| seeds.clone().map(move |seed| (model, seed))).collect();
    let total = jobs.len() * args.steps as usize;
    let (jobs, outcomes) = (Mutex::new(jobs), Mutex::new(vec![]));
    let progress = Progress::new(total, "steps", quiet);
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                // The tensors are tiny: one thread each, and several trainings side by side.
                tch::set_num_threads(1);
                while let Some((model, seed)) = jobs.lock().ok().and_then(|mut jobs| jobs.pop_front()) {
                    let outcome = train_one(model, seed, args, &progress);
                    let failed = outcome.is_err();
                    if let Ok(mut outcomes) = outcomes.lock() {
                        outcomes.push(outcome);
                    }
                    if failed && let Ok(mut jobs) = jobs.lock() {
                        jobs.clear();
                    }
                }
            });
        }
    });
    progress.finish();
    let outcomes =
        outcomes.into_inner().map_err(|_| Failure::new(Exit::Internal, "a training thread failed"))?;
    let mut outcomes = outcomes.into_iter().collect::<Result<Vec<_>, _>>()?;
    outcomes.sort_by_key(|outcome| (MODELS.iter().position(|&m| m == outcome.model), outcome.seed));
    Ok(outcomes)
}

fn train_one(model: ToyModel, seed: u64, args: &ToyArgs, progress: &Progress) -> Result<ToyResult, Failure> {
    let config = ToyConfig {
        seed,
        steps: args.steps as usize,
        pretrain_steps: args.pretrain as usize,
        learning_rate: args.learning_rate,
        samples: i64::from(args.samples),
        evaluation_samples: i64::from(args.eval_samples),
        double: args.precision == Precision::F64,
    };
    let report = |p: ssn_train::toy::ToyProgress| {
        let since = p.step % REPORT_EVERY;
        if since == 0 || p.step == config.steps {
            let steps = if since == 0 { REPORT_EVERY } else { since };
            progress.advance(steps, || format!("{}, seed {seed}, loss {:.3}", name(model), p.loss));
        }
    };
    train(model, &config, report).map_err(|error| match error {
        TrainError::NonFinite { .. } | TrainError::Diverged { .. } => Failure::new(
            Exit::NonFinite,
            format!("{} model, seed {seed}: {error}; lower --learning-rate", name(model)),
        ),
        _ => Failure::new(Exit::Internal, error),
    })
}
