//! The exponential moving average (EMA) of a network's weights and buffers.
//!
//! Every step rests on a few items and a few samples, so that the last weights of a training are partly chance. Their
//! moving average over the last hundreds of steps scatters less.

use ssn_nn::error::{Result, require};
use tch::Tensor;

use ssn_nn::model::Model;

/// The average is updated after each of the first `EACH` steps,
const EACH: u64 = 100;
/// and then after every `EVERY`th: in between weights hardly change, and an update takes time.
const EVERY: u64 = 10;
/// The average reaches back at most this fraction of the steps done: one ninth.
const PARTS: f64 = 9.0;

/// The exponential moving average of a network's weights and buffers.
#[derive(Debug)]
pub(super) struct Ema {
    steps: u64,
    /// In the order of the network's tensors.
    averages: Vec<Tensor>,
}

impl Ema {
    /// An average over about the last `steps` steps, initialized with the present weights.
    pub(super) fn new(model: &Model, steps: u64) -> Result<Self> {
        require(steps > 0, "training.ema", steps, "1 or more")?;
        let averages =
            model.parameters().entries().iter().map(|entry| entry.tensor.detach().copy()).collect();
        Ok(Self { steps, averages })
    }

    /// Updates the average after step number `steps_done`.
    pub(super) fn add(&mut self, model: &Model, steps_done: u64) -> Result<()> {
        let Some(weight) = update_weight(self.steps, steps_done) else { return Ok(()) };
        let _guard = tch::no_grad_guard();
        for (average, entry) in self.averages.iter_mut().zip(model.parameters().entries()) {
            // Counters have no average.
            if average.is_floating_point() {
                let _ = average.f_lerp_(&entry.tensor, weight)?;
            } else {
                average.f_copy_(&entry.tensor)?;
            }
        }
        Ok(())
    }

    /// Exchanges the weights of the network with the average; a second call restores them.
    pub(super) fn swap(&mut self, model: &Model) -> Result<()> {
        let _guard = tch::no_grad_guard();
        let entries = model.parameters().entries();
        let had =
            entries.iter().map(|entry| Ok(entry.tensor.f_detach_copy()?)).collect::<Result<Vec<_>>>()?;
        for (entry, average) in entries.iter().zip(&self.averages) {
            entry.tensor.shallow_clone().f_copy_(average)?;
        }
        self.averages = had;
        model.parameters().refresh()
    }
}

/// The weight 1 − decay of the new weights after `steps_done` steps; nothing if the average is not updated.
fn update_weight(steps: u64, steps_done: u64) -> Option<f64> {
    let since = match steps_done {
        0 => return None,
        1..=EACH => 1,
        _ if steps_done.is_multiple_of(EVERY) => EVERY,
        _ => return None,
    };
    let steps = (steps as f64).min(steps_done as f64 / PARTS).max(1.0);
    Some(1.0 - (1.0 - 1.0 / steps).powf(since as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_goes_back_so_many_steps_and_at_most_a_ninth_of_all() {
        // Of a line that rises by 1 every step, the mean lies so many steps behind.
        let behind = |last: u64| {
            let add = |mean: f64, step| {
                update_weight(500, step).map_or(mean, |share| mean + share * (step as f64 - mean))
            };
            last as f64 - (1..=last).fold(0.0, add)
        };
        assert!((behind(20_000) - 495.0).abs() < 1.0, "{}", behind(20_000));
        assert!((80.0..110.0).contains(&behind(900)), "{}", behind(900));
        assert!((5.0..12.0).contains(&behind(90)), "{}", behind(90));
    }

    #[test]
    fn the_first_steps_are_taken_up_whole() {
        assert_eq!((1..=9).map(|step| update_weight(500, step)).collect::<Vec<_>>(), [Some(1.0); 9]);
        assert_eq!(
            [update_weight(1, 100), update_weight(1, 105), update_weight(1, 110)],
            [Some(1.0), None, Some(1.0)]
        );
    }
}
