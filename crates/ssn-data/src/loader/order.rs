//! The case of every item of every batch: a function of the seed and the item's number alone.

use std::sync::Mutex;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssn_io::{Error, Result};

use crate::parallel::lock;
use crate::random::{Purpose, RandomStream};

/// In which order the cases come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum CaseOrder {
    /// Pass after pass over all cases, each in a new random order: one item per case and pass.
    #[default]
    Shuffled,
    /// Pass after pass in the order of the set, for validation.
    Sequential,
    /// Epochs as in the paper's 3D experiment: some images are drawn, several patches are cut from each, and the patches of
    /// all of them come in random order. Images repeat within an epoch only if the set has too few.
    Epochs {
        /// Images per epoch; 50 in the paper's experiment.
        images: usize,
        /// Patches per image; 20 in the paper's experiment.
        patches: usize,
    },
}

impl CaseOrder {
    /// The epochs of the paper's 3D experiment: 50 images with 20 patches each.
    pub const BRATS: Self = Self::Epochs { images: 50, patches: 20 };
}

/// The case of every item. Remembers the order of the last epoch, which changes no result.
#[derive(Debug)]
pub struct CaseSampler {
    seed: u64,
    cases: usize,
    order: CaseOrder,
    /// The number of an epoch and its cases; none before the first.
    last: Mutex<(u64, Vec<u32>)>,
}

impl CaseSampler {
    pub fn new(seed: u64, cases: usize, order: CaseOrder) -> Result<Self> {
        if cases == 0 || u32::try_from(cases).is_err() {
            return Err(Error::setting("the number of cases", cases, "at least 1 and below 2³²"));
        }
        if let CaseOrder::Epochs { images, patches } = order {
            let whole = images.checked_mul(patches).filter(|&n| u32::try_from(n).is_ok());
            if images == 0 || whole.is_none() {
                let expected = "at least 1, and below 2³² with all patches";
                return Err(Error::setting("order.images", images, expected));
            }
            if patches == 0 {
                return Err(Error::setting("order.patches", patches, "at least 1"));
            }
        }
        Ok(Self { seed, cases, order, last: Mutex::default() })
    }

    /// How many items make a pass or an epoch.
    fn epoch_len(&self) -> u64 {
        match self.order {
            CaseOrder::Shuffled | CaseOrder::Sequential => self.cases as u64,
            CaseOrder::Epochs { images, patches } => (images * patches) as u64,
        }
    }

    /// The case of item `q`.
    pub fn case(&self, q: u64) -> usize {
        let (epoch, place) = (q / self.epoch_len(), (q % self.epoch_len()) as usize);
        if self.order == CaseOrder::Sequential {
            return place;
        }
        let mut last = lock(&self.last);
        if last.0 != epoch || last.1.is_empty() {
            *last = (epoch, self.epoch_order(epoch));
        }
        last.1[place] as usize
    }

    fn epoch_order(&self, epoch: u64) -> Vec<u32> {
        let mut stream = RandomStream::new(self.seed, Purpose::Order, epoch);
        let mut shuffled = || {
            let mut cases: Vec<u32> = (0..self.cases as u32).collect();
            stream.shuffle(&mut cases);
            cases
        };
        match self.order {
            CaseOrder::Sequential => vec![],
            CaseOrder::Shuffled => shuffled(),
            CaseOrder::Epochs { images, patches } => {
                let mut drawn = vec![];
                while drawn.len() < images {
                    drawn.extend(shuffled());
                }
                let mut items: Vec<u32> =
                    drawn[..images].iter().flat_map(|&case| std::iter::repeat_n(case, patches)).collect();
                stream.shuffle(&mut items);
                items
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cases(sampler: &CaseSampler, range: std::ops::Range<u64>) -> Vec<usize> {
        range.map(|q| sampler.case(q)).collect()
    }

    #[test]
    fn every_pass_has_every_case_once_in_another_order() {
        let sampler = CaseSampler::new(3, 40, CaseOrder::Shuffled).unwrap();
        let (first, second) = (cases(&sampler, 0..40), cases(&sampler, 40..80));
        assert_ne!(first, second);
        for mut pass in [first, second] {
            pass.sort_unstable();
            assert_eq!(pass, (0..40).collect::<Vec<_>>());
        }
        assert_eq!(
            cases(&CaseSampler::new(3, 3, CaseOrder::Sequential).unwrap(), 0..7),
            [0, 1, 2, 0, 1, 2, 0]
        );
    }

    #[test]
    fn items_do_not_depend_on_what_was_asked_before() {
        let in_order = CaseSampler::new(9, 60, CaseOrder::BRATS).unwrap();
        let forward = cases(&in_order, 0..3000);
        let any_order = CaseSampler::new(9, 60, CaseOrder::BRATS).unwrap();
        for q in [2999, 0, 1500, 10, 2000, 1] {
            assert_eq!(any_order.case(q), forward[q as usize]);
        }
        assert_ne!(cases(&CaseSampler::new(10, 60, CaseOrder::BRATS).unwrap(), 0..3000), forward);
    }

    #[test]
    fn an_epoch_draws_its_images_and_mixes_their_patches() {
        let sampler = CaseSampler::new(1, 60, CaseOrder::BRATS).unwrap();
        let epoch = cases(&sampler, 0..1000);
        let mut counts = [0; 60];
        epoch.iter().for_each(|&case| counts[case] += 1);
        assert_eq!(counts.iter().filter(|&&count| count == 20).count(), 50);
        assert_eq!(counts.iter().filter(|&&count| count == 0).count(), 10);
        assert!(epoch.windows(2).filter(|pair| pair[0] == pair[1]).count() < 60);
        // Fewer cases than images: all are used, as evenly as can be.
        let small = CaseSampler::new(1, 3, CaseOrder::Epochs { images: 7, patches: 2 }).unwrap();
        let mut counts = [0; 3];
        cases(&small, 0..14).iter().for_each(|&case| counts[case] += 1);
        counts.sort_unstable();
        assert_eq!(counts, [4, 4, 6]);
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        assert!(CaseSampler::new(1, 0, CaseOrder::Shuffled).is_err());
        for (images, patches) in [(0, 20), (50, 0), (usize::MAX, 2)] {
            assert!(CaseSampler::new(1, 5, CaseOrder::Epochs { images, patches }).is_err());
        }
    }
}
