//! `ssn train`: a run from a config or a dataset, or the rest of one that was stopped.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use serde_json::json;
use ssn::{Control, TrainConfig, TrainedRun, of_panic, train_parallel};
use ssn_cli::args::Global;
use ssn_cli::exit::print;
use ssn_cli::{Failure, progress, signals};
use ssn_nn::communicator::is_root;

use crate::ranks::World;

/// Runs the verb.
pub fn run(config: &TrainConfig, global: &Global) -> Result<(), Failure> {
    let begin = Instant::now();
    let world = World::join()?;
    let ranks = world.as_ref().map(World::ranks);
    let is_root = is_root(ranks.as_ref());
    let (stop, show) = (signals::stop_flag("step")?, progress::show(global.quiet));
    let control = Control { progress: &show, stop: &stop };
    // A rank that has panicked ends all while it still belongs to them; the others would wait for it.
    let trained = catch_unwind(AssertUnwindSafe(|| train_parallel(config, control, ranks)));
    let trained = trained.unwrap_or_else(|panic| Err(of_panic(&*panic))).map_err(Failure::from);
    let trained = match (trained, &world) {
        (Err(failure), Some(world)) => world.end_all(&failure),
        (trained, _) => trained?,
    };
    let outcome = trained.outcome().map_err(Failure::from);
    if !is_root {
        // The first rank tells; all end with its code.
        return outcome.map_err(|failure| Failure::told(failure.kind));
    }
    let TrainedRun { path, ended, steps, best, .. } = trained;
    print(&if global.json {
        let seconds = begin.elapsed().as_secs_f64();
        let best = best.map(|best| json!({ "step": best.step, "ged": best.score }));
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
    })?;
    outcome
}
