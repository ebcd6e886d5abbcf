//! Batches, and how they are made: a function of the dataset, the settings, the seed and the batch's number.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssn_core::Lattice;
use ssn_io::{Error, Place, Result};

use crate::augment::{
    AugmentConfig, DeformationField, LabelInterpolation, PatchInfo, sample_image, sample_labels,
};
use crate::dataset::{Case, Cases};
use crate::loader::cache::CaseCache;
use crate::loader::order::{CaseOrder, CaseSampler};
use crate::loader::patch::{IndexedCase, PatchConfig, PatchLocation, RaterChoice};
use crate::parallel::{available_bytes, message, panicked};
use crate::random::{Purpose, RandomStream};

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
    pub grids: Vec<Lattice>,
    /// For each of the `b` items, and of these for each grid, `[c, d, h, w]` of the grid's count; `w` running fastest.
    pub images: Vec<f32>,
    /// `[b, t, d, h, w]`: the shape of `targets`. A network of valid convolutions has smaller targets than
    /// images, with the same center.
    pub target_shape: [usize; 5],
    /// The label maps: one rater's per image (`t` = 1), or all raters' (`t` is the most that a case of the set has).
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
    /// The number of the target's rater in the dataset, or `None` if all raters are targets.
    pub rater: Option<usize>,
    /// The voxel at the center of the patch, `[d, h, w]`.
    pub center: [usize; 3],
}

/// A rank among those that share every batch.
///
/// Batches stay what they are: items are divided in order, as evenly as can be, and item i of batch k is the same
/// whoever makes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replica {
    /// The number of this rank, from 0.
    pub rank: usize,
    /// How many there are.
    pub world_size: usize,
}

impl Replica {
    /// One rank makes everything.
    pub const SINGLE: Self = Self { rank: 0, world_size: 1 };

    /// The items of a batch that are made here.
    ///
    /// # Errors
    /// There are more ranks than items.
    pub fn items(self, batch_size: usize) -> Result<Range<usize>> {
        if batch_size < self.world_size {
            return Err(Error::setting(
                "batch_size",
                batch_size,
                format!("at least {}, an item for each of the ranks", self.world_size),
            ));
        }
        let start = |rank: usize| rank * batch_size / self.world_size;
        Ok(start(self.rank)..start(self.rank + 1))
    }
}

/// What batches hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BatchConfig {
    /// Items per batch.
    pub batch_size: usize,
    /// In which order cases come.
    #[serde(default)]
    pub order: CaseOrder,
    /// How patches are cut.
    #[serde(default)]
    pub patch: PatchConfig,
    /// How patches are augmented: a section of its own in config files.
    #[serde(skip)]
    pub augment: AugmentConfig,
    /// What the network sees of a patch, if that is less than all of it: only these voxels are made.
    #[serde(skip)]
    pub input_grids: Option<Vec<Lattice>>,
}

impl BatchConfig {
    /// Batches of whole images in random order, without augmentation.
    pub fn new(batch_size: usize) -> Self {
        let (order, patch, augment) = Default::default();
        Self { batch_size, order, patch, augment, input_grids: None }
    }
}

/// A set of cases with the settings of its batches.
pub struct BatchSampler {
    cases: Arc<dyn Cases>,
    seed: u64,
    config: BatchConfig,
    /// The items of every batch that are made.
    items: Range<usize>,
    /// The most raters of a case.
    raters: usize,
    order: CaseSampler,
    cache: CaseCache<IndexedCase>,
}

impl BatchSampler {
    /// Checks the settings; cases are kept in memory up to `cache_bytes`.
    pub fn new(cases: Arc<dyn Cases>, seed: u64, config: BatchConfig, cache_bytes: usize) -> Result<Self> {
        if config.batch_size == 0 {
            return Err(Error::setting("batch_size", 0, "at least 1"));
        }
        config.patch.check()?;
        config.augment.check()?;
        let items = 0..config.batch_size;
        let raters = (0..cases.len()).map(|index| cases.rater_count(index)).max().unwrap_or(0);
        let order = CaseSampler::new(seed, cases.len(), config.order)?;
        Ok(Self { cases, seed, config, items, raters, order, cache: CaseCache::new(cache_bytes) })
    }

    /// The same for the items of batches that fall to one of several ranks.
    pub fn for_replica(self, replica: Replica) -> Result<Self> {
        Ok(Self { items: replica.items(self.config.batch_size)?, ..self })
    }

    /// The batch of a number.
    pub fn batch(&self, number: u64) -> Result<Batch> {
        let batch = self.batch_unless_stopped(number, &|| false)?;
        batch.ok_or_else(|| Error::setting("batch_size", "0", "at least 1"))
    }

    /// Batch `number`, or `None` if `stopped` becomes true while it is made. A panic becomes an error.
    pub(super) fn batch_unless_stopped(
        &self,
        number: u64,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Option<Batch>> {
        let mut index = 0;
        let made = catch_unwind(AssertUnwindSafe(|| -> Result<_> {
            let mut batch = None;
            for item in self.items.clone() {
                if stopped() {
                    return Ok(None);
                }
                let q = number.wrapping_mul(self.config.batch_size as u64).wrapping_add(item as u64);
                index = self.order.case(q);
                self.add_item(number, q, index, item, &mut batch)?;
            }
            Ok(batch)
        }));
        // A foreign set may panic here too, and the consumer waits for this batch.
        let id = || {
            let id = catch_unwind(AssertUnwindSafe(|| self.cases.id(index).to_owned()));
            id.unwrap_or_else(|_| format!("number {index}"))
        };
        let is_placed = |error: &Error| match &error.place {
            Place::Setting(_) => true,
            Place::Case(named) => *named == id(),
            Place::None | Place::File(_) => false,
        };
        match made {
            Ok(Err(error)) if !is_placed(&error) => Err(error.in_case(id())),
            Ok(made) => made,
            Err(panic) => Err(panicked(&id(), &message(panic.as_ref()))),
        }
    }

    fn add_item(
        &self,
        number: u64,
        q: u64,
        index: usize,
        item: usize,
        batch: &mut Option<Batch>,
    ) -> Result<()> {
        let patch = &self.config.patch;
        let indexed = self.cache.get(index, || {
            let indexed = IndexedCase::new(self.cases.load(index)?, patch)?;
            let bytes = indexed.bytes();
            Ok((indexed, bytes))
        })?;
        let case = &indexed.case;
        let mut stream = RandomStream::new(self.seed, Purpose::Patch, q);
        let chosen = patch.choose(&indexed, self.raters, &mut stream)?;
        let shapes = self.shapes(case, &chosen);
        if batch.is_none() {
            check_bytes(&shapes)?;
        }
        let batch = batch.get_or_insert_with(|| self.empty(number, shapes, chosen.window.size));
        if shapes != [batch.image_shape, batch.target_shape] {
            let reason = format!(
                "its images and targets are {:?} and {:?}, but those of case {} are {:?} and {:?}",
                &shapes[0][1..],
                &shapes[1][1..],
                batch.origins[0].id,
                &batch.image_shape[1..],
                &batch.target_shape[1..]
            );
            let advice = "give patches a size, or bring the cases to one shape";
            return Err(Error::case(&case.id, reason).advise(advice));
        }
        self.fill(&indexed, &chosen, q, item - self.items.start, batch);
        let rater = match patch.rater {
            RaterChoice::All => None,
            _ => chosen.targets.first().map(|&place| case.rater_number(place)),
        };
        let origin = Origin { case: index, id: case.id.clone(), rater, center: chosen.center };
        batch.origins.push(origin);
        Ok(())
    }

    /// `[b, c, d, h, w]` of images and `[b, t, d, h, w]` of targets.
    fn shapes(&self, case: &Case, chosen: &PatchLocation) -> [[usize; 5]; 2] {
        let shape = |n, [d, h, w]: [usize; 3]| [self.items.len(), n, d, h, w];
        [shape(case.channels, chosen.window.size), shape(chosen.targets.len(), chosen.target.size)]
    }

    /// A batch whose items are still to be filled in, of patches of a size.
    fn empty(&self, number: u64, shapes: [[usize; 5]; 2], size: [usize; 3]) -> Batch {
        let [image_shape, target_shape] = shapes;
        let [items, channels, ..] = image_shape;
        let grids = self.config.input_grids.clone().unwrap_or_else(|| vec![Lattice::whole(size)]);
        Batch {
            number,
            first: self.items.start,
            of: self.config.batch_size,
            image_shape,
            images: vec![0.0; items * channels * grids.iter().map(Lattice::voxels).sum::<usize>()],
            grids,
            target_shape,
            targets: vec![0; target_shape.iter().product()],
            masks: None,
            origins: Vec::with_capacity(items),
        }
    }

    /// Cuts and augments one patch.
    fn fill(&self, indexed: &IndexedCase, chosen: &PatchLocation, q: u64, item: usize, batch: &mut Batch) {
        let IndexedCase { case, image: stored, .. } = indexed;
        let [_, channels, ..] = batch.image_shape;
        let (size, flat) = (chosen.window.size, case.shape[0] == 1);
        let [w, h, d] = case.geometry.spacing;
        let info = PatchInfo { size, spacing: [d, h, w], channels, flat };
        let mut stream = RandomStream::new(self.seed, Purpose::Augment, q);
        let (changes, intensities) = self.config.augment.draw(&info, &mut stream);
        let field = DeformationField::new(&changes, size, flat);

        let grids = &batch.grids;
        let values = channels * grids.iter().map(Lattice::voxels).sum::<usize>();
        let image = &mut batch.images[item * values..][..values];
        let mut start = 0;
        for grid in grids {
            let end = start + channels * grid.voxels();
            sample_image(stored, &field, chosen.window, grid, &mut image[start..end]);
            start = end;
        }
        intensities.iter().for_each(|change| change.apply(image, channels, size, grids));

        let voxels: usize = chosen.target.size.iter().product();
        let count = chosen.targets.len() * voxels;
        let labels = batch.targets[item * count..][..count].chunks_exact_mut(voxels);
        let raters = chosen.targets.iter().map(|&place| case.raters[place].as_slice());
        let mut maps: Vec<(&[u8], &mut [u8])> = raters.zip(labels).collect();
        sample_labels(&mut maps, case.shape, &field, chosen.target, self.config.augment.labels);

        if let Some(mask) = &case.mask {
            // Items without a mask are valid everywhere.
            let masks = batch.masks.get_or_insert_with(|| vec![1; batch.image_shape[0] * voxels]);
            let mut pair = [(mask.as_slice(), &mut masks[item * voxels..][..voxels])];
            sample_labels(&mut pair, case.shape, &field, chosen.target, LabelInterpolation::Nearest);
        }
    }
}

/// Refuses batches, images of four bytes a value and targets of one, that do not fit into memory.
fn check_bytes([images, targets]: &[[usize; 5]; 2]) -> Result<()> {
    let product = |shape: &[usize; 5]| shape.iter().try_fold(1usize, |n, &side| n.checked_mul(side));
    let bytes = product(images).and_then(|n| n.checked_mul(4)?.checked_add(product(targets)?));
    if bytes.is_some_and(|bytes| bytes < SMALL_BATCH || bytes < available_bytes()) {
        return Ok(());
    }
    let [items, channels, d, h, w] = images;
    let expected = format!(
        "smaller, or patches must be: {items} items of {channels} × {d} × {h} × {w} values do not fit into memory"
    );
    Err(Error::setting("batch_size", items, expected))
}

/// Bytes of a batch that is made without a look at the memory that is left.
const SMALL_BATCH: usize = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_beyond_all_memory_are_refused() {
        assert!(check_bytes(&[[2, 1, 4, 4, 4], [2, 1, 4, 4, 4]]).is_ok());
        for side in [1 << 15, usize::MAX] {
            let error = check_bytes(&[[8, 4, side, side, 1000], [8, 1, 1, 1, 1]]).unwrap_err().to_string();
            assert!(error.contains("batch_size is 8") && error.contains("do not fit into memory"), "{error}");
        }
    }

    #[test]
    fn ranks_divide_a_batch_evenly_and_completely() {
        for (batch, ranks) in [(12, 1), (12, 4), (10, 4), (3, 3), (7, 2)] {
            let parts: Vec<_> =
                (0..ranks).map(|rank| Replica { rank, world_size: ranks }.items(batch).unwrap()).collect();
            let all: Vec<usize> = parts.iter().cloned().flatten().collect();
            assert_eq!(all, (0..batch).collect::<Vec<_>>());
            let sizes = parts.iter().map(Range::len);
            assert!(sizes.clone().max().unwrap() - sizes.min().unwrap() <= 1, "{parts:?}");
        }
        let error = Replica { rank: 0, world_size: 5 }.items(4).unwrap_err().to_string();
        assert!(error.contains("at least 5, an item for each of the ranks"), "{error}");
    }
}
