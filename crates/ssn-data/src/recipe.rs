//! How a batch is made: a function of the set, the settings, the seed and the batch's number, in one thread.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::augment::{AugmentConfig, Subject};
use crate::batch::{Batch, Origin};
use crate::cache::Cache;
use crate::case::Cases;
use crate::error::{DataError, Result};
use crate::gather::{LabelInterpolation, gather_image, gather_labels};
use crate::grid::Grid;
use crate::map::SpatialMap;
use crate::parallel::message;
use crate::patch::{Chosen, PatchConfig};
use crate::plan::{Order, Plan};
use crate::prepared::Prepared;
use crate::random::{Purpose, Stream};
use crate::share::Share;

/// What batches hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BatchConfig {
    /// Items per batch.
    pub batch_size: usize,
    /// In which order cases come.
    #[serde(default)]
    pub order: Order,
    /// How patches are cut.
    #[serde(default)]
    pub patch: PatchConfig,
    /// How patches are changed: a section of its own in config files.
    #[serde(skip)]
    pub augment: AugmentConfig,
    /// What the network sees of a patch, if that is less than all of it: only these voxels are made.
    #[serde(skip)]
    pub seen: Option<Vec<Grid>>,
}

/// A set of cases with the settings of its batches.
pub struct Recipe {
    cases: Arc<dyn Cases>,
    seed: u64,
    config: BatchConfig,
    /// The items of every batch that are made.
    items: Range<usize>,
    cache: Cache<Prepared>,
}

impl Recipe {
    /// Checks the settings; cases are kept in memory up to `cache_bytes`.
    pub fn new(cases: Arc<dyn Cases>, seed: u64, config: BatchConfig, cache_bytes: usize) -> Result<Self> {
        if config.batch_size == 0 {
            let (field, value) = ("batch_size", "0".to_owned());
            return Err(DataError::Setting { field, value, expected: "at least 1".to_owned() });
        }
        config.patch.check()?;
        config.augment.check()?;
        let items = 0..config.batch_size;
        let recipe = Self { cases, seed, config, items, cache: Cache::new(cache_bytes) };
        recipe.plan().map(|_| recipe)
    }

    /// The same for the items of batches that fall to one of several ranks.
    pub fn shared(self, share: Share) -> Result<Self> {
        Ok(Self { items: share.items(self.config.batch_size)?, ..self })
    }

    /// The order of the cases. A plan that is used for one batch after the other saves work.
    pub fn plan(&self) -> Result<Plan> {
        Plan::new(self.seed, self.cases.len(), self.config.order)
    }

    /// The batch of a number.
    pub fn batch(&self, number: u64) -> Result<Batch> {
        let batch = self.batch_unless(number, &mut self.plan()?, &|| false)?;
        batch.ok_or_else(|| DataError::Setting {
            field: "batch_size",
            value: "0".to_owned(),
            expected: "at least 1".to_owned(),
        })
    }

    /// The batch of a number, or nothing if `stopped` becomes true while it is made. A panic becomes an error.
    pub fn batch_unless(
        &self,
        number: u64,
        plan: &mut Plan,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Option<Batch>> {
        let mut batch = None;
        for item in self.items.clone() {
            if stopped() {
                return Ok(None);
            }
            let q = number.wrapping_mul(self.config.batch_size as u64).wrapping_add(item as u64);
            let index = plan.case(q);
            let id = || self.cases.id(index).to_owned();
            match catch_unwind(AssertUnwindSafe(|| self.add_item(number, q, index, item, &mut batch))) {
                Ok(Ok(())) => {}
                Ok(Err(error @ (DataError::Case { .. } | DataError::Setting { .. }))) => return Err(error),
                Ok(Err(error)) => return Err(DataError::Load { id: id(), source: Box::new(error) }),
                Err(panic) => return Err(DataError::Panic { id: id(), message: message(panic.as_ref()) }),
            }
        }
        Ok(batch)
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
        let case = self.cache.get(index, || {
            let case = Prepared::new(self.cases.load(index)?, patch.index())?;
            let bytes = case.bytes();
            Ok((case, bytes))
        })?;
        let chosen = patch.choose(&case, &mut Stream::new(self.seed, Purpose::Patch, q))?;
        let shapes = self.shapes(&case, &chosen);
        let batch = batch.get_or_insert_with(|| Batch {
            first: self.items.start,
            of: self.config.batch_size,
            ..empty(number, shapes, self.grids(chosen.window.size))
        });
        if shapes != [batch.image_shape, batch.target_shape] {
            let reason = format!(
                "its images and targets are {:?} and {:?}, but those of case {} are {:?} and {:?}",
                &shapes[0][1..],
                &shapes[1][1..],
                batch.origins[0].id,
                &batch.image_shape[1..],
                &batch.target_shape[1..]
            );
            let advice = "give patches a size and choose one rater, or bring the cases to one shape";
            return Err(DataError::Case { id: case.id.clone(), reason, advice });
        }
        self.fill(&case, &chosen, q, item - self.items.start, batch);
        let rater = chosen.rater.map(|place| case.rater_number(place));
        let origin = Origin { case: index, id: case.id.clone(), rater, center: chosen.center };
        batch.origins.push(origin);
        Ok(())
    }

    /// `[b, c, d, h, w]` of images and `[b, t, d, h, w]` of targets.
    fn shapes(&self, case: &Prepared, chosen: &Chosen) -> [[usize; 5]; 2] {
        let targets = chosen.rater.map_or(case.raters.len(), |_| 1);
        let shape = |n, [d, h, w]: [usize; 3]| [self.items.len(), n, d, h, w];
        [shape(case.image.channels(), chosen.window.size), shape(targets, chosen.target.size)]
    }

    /// The voxels of a patch of a size that are made.
    fn grids(&self, size: [usize; 3]) -> Vec<Grid> {
        self.config.seen.clone().unwrap_or_else(|| vec![Grid::whole(size)])
    }

    /// Cuts and changes one patch.
    fn fill(&self, case: &Prepared, chosen: &Chosen, q: u64, item: usize, batch: &mut Batch) {
        let [_, channels, ..] = batch.image_shape;
        let (size, flat) = (chosen.window.size, case.shape()[0] == 1);
        let subject = Subject { size, spacing: case.spacing, channels, flat };
        let drawn = self.config.augment.draw(&subject, &mut Stream::new(self.seed, Purpose::Augment, q));
        let map = SpatialMap::new(&drawn.changes, size, flat);

        let grids = &batch.grids;
        let values = channels * grids.iter().map(Grid::voxels).sum::<usize>();
        let image = &mut batch.images[item * values..][..values];
        let mut start = 0;
        for grid in grids {
            let end = start + channels * grid.voxels();
            gather_image(&case.image, &map, chosen.window, grid, &mut image[start..end]);
            start = end;
        }
        drawn.intensities.iter().for_each(|change| change.apply(image, channels, size, grids));

        let voxels: usize = chosen.target.size.iter().product();
        let raters = match chosen.rater {
            Some(rater) => &case.raters[rater..=rater],
            None => &case.raters[..],
        };
        let labels = &mut batch.targets[item * raters.len() * voxels..][..raters.len() * voxels];
        let mut maps: Vec<(&[u8], &mut [u8])> =
            raters.iter().map(Vec::as_slice).zip(labels.chunks_exact_mut(voxels)).collect();
        gather_labels(&mut maps, case.shape(), &map, chosen.target, self.config.augment.labels);

        if let Some(mask) = &case.mask {
            // Nothing means everywhere: so it was for the items before this one.
            let masks = batch.masks.get_or_insert_with(|| vec![1; batch.image_shape[0] * voxels]);
            let mut pair = [(mask.as_slice(), &mut masks[item * voxels..][..voxels])];
            gather_labels(&mut pair, case.shape(), &map, chosen.target, LabelInterpolation::Nearest);
        }
    }
}

fn empty(number: u64, [image_shape, target_shape]: [[usize; 5]; 2], grids: Vec<Grid>) -> Batch {
    let [items, channels, ..] = image_shape;
    let voxels: usize = grids.iter().map(Grid::voxels).sum();
    Batch {
        number,
        first: 0,
        of: items,
        image_shape,
        images: vec![0.0; items * channels * voxels],
        grids,
        target_shape,
        targets: vec![0; target_shape.iter().product()],
        masks: None,
        origins: Vec::with_capacity(image_shape[0]),
    }
}
