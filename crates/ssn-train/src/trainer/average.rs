//! The mean of a network's tensors over its last steps.
//!
//! Every step rests on a few items and a few samples, so that the last weights of a training are partly chance. Their
//! mean over the last hundreds of steps, in which late ones weigh most, scatters less.

use tch::Tensor;

use crate::error::{Result, require};
use ssn_nn::model::Model;

/// The mean takes up the weights after each of so many steps,
const EACH: u64 = 100;
/// and then after every so many: in between they hardly change, and it costs time.
const EVERY: u64 = 10;
/// The mean is over at most the last of so many parts of the steps done.
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
        let Some(share) = share(self.steps, steps_done) else { return Ok(()) };
        let _guard = tch::no_grad_guard();
        for (mean, entry) in self.means.iter_mut().zip(model.parameters().entries()) {
            let _ = mean.f_lerp_(&entry.tensor, share)?;
        }
        Ok(())
    }

    /// Gives the network the means, and keeps what it had; once more, and all is as before.
    pub fn swap(&mut self, model: &Model) -> Result<()> {
        let _guard = tch::no_grad_guard();
        let entries = model.parameters().entries();
        let had =
            entries.iter().map(|entry| Ok(entry.tensor.f_detach_copy()?)).collect::<Result<Vec<_>>>()?;
        for (entry, mean) in entries.iter().zip(&self.means) {
            entry.tensor.shallow_clone().f_copy_(mean)?;
        }
        self.means = had;
        Ok(model.parameters().refresh()?)
    }
}

/// How much the weights after so many steps weigh in the new mean; nothing if they are not taken up.
fn share(steps: u64, steps_done: u64) -> Option<f64> {
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
            let add =
                |mean: f64, step| share(500, step).map_or(mean, |share| mean + share * (step as f64 - mean));
            last as f64 - (1..=last).fold(0.0, add)
        };
        assert!((behind(20_000) - 495.0).abs() < 1.0, "{}", behind(20_000));
        assert!((80.0..110.0).contains(&behind(900)), "{}", behind(900));
        assert!((5.0..12.0).contains(&behind(90)), "{}", behind(90));
    }

    #[test]
    fn the_first_steps_are_taken_up_whole() {
        assert_eq!((1..=9).map(|step| share(500, step)).collect::<Vec<_>>(), [Some(1.0); 9]);
        assert_eq!([share(1, 100), share(1, 105), share(1, 110)], [Some(1.0), None, Some(1.0)]);
    }
}
