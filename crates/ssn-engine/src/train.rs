//! `ssn train`: a run from a config or a dataset, or the rest of one that was stopped.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use serde_json::json;
use ssn::training::run::Event;
use ssn::{Control, TrainConfig, TrainedRun, Training, of_panic};
use ssn_cli::{Answer, Failure};
use ssn_nn::communicator::is_root;

use crate::ranks::World;

/// Runs the verb; `listener` gets the events.
pub fn answer(
    config: &TrainConfig,
    control: Control<'_>,
    listener: impl FnMut(&Event),
) -> Result<Answer, Failure> {
    let begin = Instant::now();
    let world = World::join()?;
    let ranks = world.as_ref().map(World::ranks);
    let is_root = is_root(ranks.as_ref());
    let training = Training::from_config(config).ranks(ranks).on_event(listener);
    // A rank that has panicked ends all while it still belongs to them; the others would wait for it.
    let trained = catch_unwind(AssertUnwindSafe(|| training.start(control)));
    let trained = trained.unwrap_or_else(|panic| Err(of_panic(&*panic))).map_err(Failure::from);
    let trained = match (trained, &world) {
        (Err(failure), Some(world)) => world.end_all(&failure),
        (trained, _) => trained?,
    };
    let failure = trained.outcome().err().map(Failure::from);
    if !is_root {
        // The first rank answers; all end with its code.
        let failure = failure.map(|failure| Failure::told(failure.kind));
        return Ok(Answer { failure, ..Answer::of_json("", None) });
    }
    let TrainedRun { path, ended, steps, best, .. } = trained;
    let seconds = begin.elapsed().as_secs_f64();
    let mut text = format!("run         {}\nsteps       {steps}\n", path.display());
    if let Some(best) = best {
        text += &format!("best        step {}, GED² {:.4}\n", best.step, best.score);
    }
    let best = best.map(|best| json!({ "step": best.step, "ged": best.score }));
    let json = json!({ "run": path, "ended": ended, "steps": steps, "best": best, "seconds": seconds });
    Ok(Answer { failure, ..Answer::new(text, &json)? })
}
