//! Random changes of patches: which there are, what they draw, and the paper's choices.
//!
//! Every change is drawn from the item's own stream. Spatial changes become maps that are composed into one; changes of
//! intensity follow on the finished patch. `docs/reference/augmentation.md` has the formulas.

mod config;
mod intensity;
mod preset;
mod spatial;

pub use config::{AugmentConfig, Augmentation, Axis};
pub use intensity::Intensity;
pub use preset::Preset;

use crate::map::Change;
use crate::random::Stream;

/// What a draw must know of the patch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Subject {
    /// The size of the patch, `[d, h, w]`.
    pub size: [usize; 3],
    /// The distances of neighboring voxels, `[d, h, w]`.
    pub spacing: [f64; 3],
    /// The number of channels.
    pub channels: usize,
    /// Whether the image has depth 1: then nothing moves along d.
    pub flat: bool,
}

/// The changes of one patch.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Drawn {
    /// Spatial changes in the order in which they happen to the image.
    pub changes: Vec<Change>,
    /// Changes of intensity, in order.
    pub intensities: Vec<Intensity>,
}

impl AugmentConfig {
    /// Draws the changes of one patch.
    pub fn draw(&self, subject: &Subject, stream: &mut Stream) -> Drawn {
        let mut drawn = Drawn::default();
        for augmentation in &self.steps {
            if !stream.chance(augmentation.probability()) {
                continue;
            }
            match intensity::draw(augmentation, subject, stream) {
                Some(intensity) => drawn.intensities.push(intensity),
                None => drawn.changes.extend(spatial::draw(augmentation, subject, stream)),
            }
        }
        drawn
    }
}

#[cfg(test)]
mod tests;
