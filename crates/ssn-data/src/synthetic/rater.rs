//! Raters: a few random numbers, and the label map that follows from them.

use super::config::SyntheticConfig;
use super::scene::Scene;
use crate::random::Stream;

/// Levels are cut off here, so that no border moves without bound.
const LARGEST_LEVEL: f32 = 2.2;

/// A rater of one case.
#[derive(Debug, Clone, PartialEq)]
pub struct Rater {
    /// Whether the rater follows spikes.
    pub spiky: bool,
    /// For each lesion, a standard normal number: the lesion is marked if its visibility is not below it.
    pub reluctance: Vec<f32>,
    /// For each lesion, a standard normal number, cut off at ±2.2: how far out the rater draws its border.
    pub level: Vec<f32>,
    /// The same for the border of its core.
    pub core_level: Vec<f32>,
}

impl Rater {
    pub(super) fn draw(config: &SyntheticConfig, lesions: usize, stream: &mut Stream) -> Self {
        let spiky = stream.chance(config.spiky);
        let (common, own) = (config.correlation.sqrt(), (1.0 - config.correlation).sqrt());
        let [sight, habit] = [stream.normal(), stream.normal()];
        let mut rater = Self { spiky, reluctance: vec![], level: vec![], core_level: vec![] };
        let cut = |level: f64| (level as f32).clamp(-LARGEST_LEVEL, LARGEST_LEVEL);
        for _ in 0..lesions {
            rater.reluctance.push((common * sight + own * stream.normal()) as f32);
            rater.level.push(cut(common * habit + own * stream.normal()));
            rater.core_level.push(cut(common * habit + own * stream.normal()));
        }
        rater
    }
}

impl Scene {
    /// The label map `[d, h, w]` that a rater draws.
    pub fn labels(&self, rater: &Rater) -> Vec<u8> {
        let mut labels = vec![0; self.size.iter().product()];
        for (number, lesion) in self.lesions.iter().enumerate() {
            if rater.reluctance[number] > lesion.visibility {
                continue;
            }
            for &(voxel, seen) in &self.seen[number] {
                if lesion.level_needed(seen, rater.spiky) > rater.level[number] {
                    continue;
                }
                let core = self.classes == 3 && lesion.core_level_needed(seen) <= rater.core_level[number];
                labels[voxel] = if core { 2 } else { 1 };
            }
        }
        labels
    }

    /// The probability of every voxel `[d, h, w]` to be marked by a rater, as anything but background.
    pub fn marginal(&self) -> Vec<f64> {
        let mut probabilities = vec![0.0; self.size.iter().product()];
        for (number, lesion) in self.lesions.iter().enumerate() {
            let marked = normal_below(f64::from(lesion.visibility));
            for &(voxel, seen) in &self.seen[number] {
                let inside = |spiky| match lesion.level_needed(seen, spiky) {
                    level if level > LARGEST_LEVEL => 0.0,
                    level if level <= -LARGEST_LEVEL => 1.0,
                    level => normal_below(f64::from(-level)),
                };
                let share = self.spiky * inside(true) + (1.0 - self.spiky) * inside(false);
                probabilities[voxel] += marked * share;
            }
        }
        probabilities
    }
}

/// The probability of a standard normal number to be below x, to 1.5e-7 (Abramowitz and Stegun, formula 7.1.26).
fn normal_below(x: f64) -> f64 {
    let z = x.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * z);
    let coefficients = [0.254_829_592, -0.284_496_736, 1.421_413_741, -1.453_152_027, 1.061_405_429];
    let tail = coefficients.iter().rev().fold(0.0, |sum, c| (sum + c) * t) * (-z * z).exp() / 2.0;
    if x < 0.0 { tail } else { 1.0 - tail }
}
