//! What the trainer gets.

use crate::grid::Grid;

/// A batch of patches: a function of the seed and the batch's number alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// The number of the batch, from 0.
    pub number: u64,
    /// Where the items of this part begin in the batch; 0 for a whole one.
    pub first: usize,
    /// The items of the whole batch: `b` if this is all of it.
    pub of: usize,
    /// `[b, c, d, h, w]` of the patches.
    pub image_shape: [usize; 5],
    /// What there is of every patch: all of it, or several grids that a network sees.
    pub grids: Vec<Grid>,
    /// For each of the `b` items, and of these for each grid, `[c, d, h, w]` of the grid's count; `w` running fastest.
    pub images: Vec<f32>,
    /// `[b, t, d, h, w]`: the shape of `targets`. A network of valid convolutions has smaller targets than
    /// images, with the same center.
    pub target_shape: [usize; 5],
    /// The label maps: one rater's per image (`t` = 1), or all raters' (`t` = n).
    pub targets: Vec<u8>,
    /// The regions of interest `[b, d, h, w]` on the grid of the targets, 1 inside and 0 outside.
    pub masks: Option<Vec<u8>>,
    /// Where each of the `b` items came from.
    pub origins: Vec<Origin>,
}

impl Batch {
    /// The bytes that the arrays of this batch take.
    pub fn bytes(&self) -> usize {
        4 * self.images.len() + self.targets.len() + self.masks.as_ref().map_or(0, Vec::len)
    }
}

/// Where an item of a batch came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The case, by its place in the set.
    pub case: usize,
    /// The case, by name.
    pub id: String,
    /// The number of the target's rater in the dataset, or nothing if all raters are targets.
    pub rater: Option<usize>,
    /// The voxel at the center of the patch, `[d, h, w]`.
    pub center: [usize; 3],
}
