//! Batches made ahead of time by threads, handed out in order.
//!
//! A batch is a function of its number, so that threads need no order among themselves: each takes the next number,
//! and the consumer waits for the one it wants. How many threads there are changes nothing but the time it takes.

mod queue;

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::batch::Batch;
use crate::cache;
use crate::case::Cases;
use crate::error::{DataError, Result};
use crate::plan::Plan;
use crate::recipe::{BatchConfig, Recipe};
use crate::share::Share;

use queue::Queue;

/// The memory for finished batches if nobody says otherwise: a few batches of the largest kind in use (10 patches of
/// 4 × 110³ voxels take 213 MB), and hundreds of small ones.
pub const DEFAULT_PREFETCH_BYTES: usize = 1 << 30;

/// How long the end of a loader waits for its threads; one that is still loading a case ends by itself afterwards.
const FAREWELL: Duration = Duration::from_secs(1);

/// How batches are made ahead of time. Nothing here changes what they hold; ranks may divide their items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoaderConfig {
    /// Threads; 0 makes every batch when it is asked for.
    pub workers: usize,
    /// The bytes of batches that are made ahead. One batch is always made, however large.
    pub prefetch_bytes: usize,
    /// The bytes of cases that are kept in memory; nothing means a quarter of what is available.
    pub cache_bytes: Option<usize>,
    /// The first batch.
    pub start: u64,
    /// Which items of each batch are made.
    pub share: Share,
}

impl Default for LoaderConfig {
    fn default() -> Self {
        Self {
            workers: 2,
            prefetch_bytes: DEFAULT_PREFETCH_BYTES,
            cache_bytes: None,
            start: 0,
            share: Share::WHOLE,
        }
    }
}

/// An endless sequence of batches. It ends with the first error; dropping it stops its threads.
pub struct Loader {
    recipe: Arc<Recipe>,
    queue: Arc<Queue>,
    threads: Vec<JoinHandle<()>>,
    plan: Plan,
    next: u64,
    failed: bool,
}

impl Loader {
    /// Checks the settings and starts the threads.
    pub fn new(
        cases: Arc<dyn Cases>,
        seed: u64,
        batches: BatchConfig,
        config: &LoaderConfig,
    ) -> Result<Self> {
        let cache_bytes = config.cache_bytes.unwrap_or_else(cache::default_bytes);
        let recipe = Arc::new(Recipe::new(cases, seed, batches, cache_bytes)?.shared(config.share)?);
        let queue = Arc::new(Queue::new(config.start, config.prefetch_bytes));
        let plan = recipe.plan()?;
        let threads = vec![];
        let mut loader = Self { recipe, queue, threads, plan, next: config.start, failed: false };
        for number in 0..config.workers {
            let (recipe, queue, plan) = (loader.recipe.clone(), loader.queue.clone(), loader.plan.clone());
            queue.worker_starts();
            let thread = thread::Builder::new().name(format!("batches-{number}"));
            let work = move || {
                let _guard = queue::Leaving(&queue);
                work(&recipe, &queue, plan);
            };
            loader.threads.push(thread.spawn(work).map_err(|error| {
                loader.queue.worker_ends();
                DataError::Setting {
                    field: "workers",
                    value: config.workers.to_string(),
                    expected: format!("no more threads than the system can start ({error})"),
                }
            })?);
        }
        Ok(loader)
    }
}

/// Makes batches until told to stop.
fn work(recipe: &Recipe, queue: &Queue, mut plan: Plan) {
    while let Some(number) = queue.claim() {
        match recipe.batch_unless(number, &mut plan, &|| queue.is_stopped()) {
            Ok(Some(batch)) => queue.deliver(batch),
            Ok(None) => return,
            Err(error) => queue.fail(number, error),
        }
    }
}

impl Iterator for Loader {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Result<Batch>> {
        if self.failed {
            return None;
        }
        let batch = if self.threads.is_empty() {
            let made = self.recipe.batch_unless(self.next, &mut self.plan, &|| false);
            made.transpose()?
        } else {
            self.queue.take(self.next)
        };
        self.next += 1;
        self.failed = batch.is_err();
        if self.failed {
            self.queue.stop();
        }
        Some(batch)
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        self.queue.stop();
        if self.queue.wait_until_left(FAREWELL) {
            for thread in self.threads.drain(..) {
                // A thread ends by itself after it left, and its panics were turned into errors before.
                let _ = thread.join();
            }
        }
    }
}

#[cfg(test)]
mod tests;
