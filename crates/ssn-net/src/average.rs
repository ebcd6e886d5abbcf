//! The mean of a network's tensors over its last steps.
//!
//! Every step rests on a few items and a few samples, so that the last weights of a training are partly chance. Their
//! mean over the last hundreds of steps, in which late ones weigh most, scatters less.

use tch::Tensor;

use crate::error::{Result, require};
use crate::model::Model;

/// The mean takes up the weights after every so many steps: in between they hardly change, and it costs time.
const EVERY: u64 = 10;
/// In the beginning, the mean is over the last of so many parts of all steps.
const PARTS: f64 = 9.0;

/// The mean of a network's tensors, trained or kept, over its last steps.
#[derive(Debug)]
pub struct WeightAverage {
    steps: u64,
    /// In the order of the network's tensors.
    means: Vec<Tensor>,
}

impl WeightAverage {
    /// A mean over about the last `steps` steps, which so far is what the network has.
    pub fn new(model: &Model, steps: u64) -> Result<Self> {
        require(steps > 0, "the steps of a mean", steps, "1 or more")?;
        let means = model.parameters().entries().iter().map(|entry| entry.tensor.detach().copy()).collect();
        Ok(Self { steps, means })
    }

    /// Takes up what the network has after so many steps.
    pub fn add(&mut self, model: &Model, steps_done: u64) -> Result<()> {
        if steps_done % EVERY != 0 {
            return Ok(());
        }
        let share = share(self.steps, steps_done);
        let _guard = tch::no_grad_guard();
        for (mean, entry) in self.means.iter_mut().zip(model.parameters().entries()) {
            // Counters of a foreign network have no mean.
            if entry.tensor.is_floating_point() {
                let _ = mean.f_lerp_(&entry.tensor, share)?;
            } else {
                mean.f_copy_(&entry.tensor)?;
            }
        }
        Ok(())
    }

    /// Gives the network the means, and keeps what it had; once more, and all is as before.
    pub fn swap(&mut self, model: &Model) -> Result<()> {
        let _guard = tch::no_grad_guard();
        for (mean, entry) in self.means.iter_mut().zip(model.parameters().entries()) {
            let had = entry.tensor.f_detach_copy()?;
            entry.tensor.shallow_clone().f_copy_(mean)?;
            mean.f_copy_(&had)?;
        }
        model.parameters().refresh()
    }
}

/// How much the weights after so many steps weigh in the new mean.
fn share(steps: u64, steps_done: u64) -> f64 {
    let steps = (steps as f64).min((steps_done + EVERY) as f64 / PARTS).max(1.0);
    1.0 - (1.0 - 1.0 / steps).powf(EVERY as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_forgets_its_beginning_and_then_goes_back_so_many_steps() {
        // Of a line that rises by 1 every step, the mean lies so many steps behind.
        let mean_after = |last: u64| {
            (1..=last / EVERY).fold(0.0, |mean, k| {
                let step = k * EVERY;
                mean + share(500, step) * (step as f64 - mean)
            })
        };
        assert!((20_000.0 - mean_after(20_000) - 495.0).abs() < 1.0, "{}", mean_after(20_000));
        let early = 900.0 - mean_after(900);
        assert!((80.0..110.0).contains(&early), "{early}");
    }

    #[test]
    fn a_mean_over_one_step_is_the_last() {
        assert_eq!(share(1, 10), 1.0);
    }
}
