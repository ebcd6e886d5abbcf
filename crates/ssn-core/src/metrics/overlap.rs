//! Dice and IoU of two masks, and the paper's pooled DSC and DSC_nod.
//!
//! With A and B the voxels of a class or of a [`ClassGroup`] in two maps:
//!
//! - Dice = 2|A ∩ B| / (|A| + |B|),
//! - IoU = |A ∩ B| / |A ∪ B| with |A ∪ B| = |A| + |B| − |A ∩ B|.
//!
//! Both are 0 when exactly one mask is empty. When both are empty the quotient is 0/0 and [`BothEmpty`]
//! decides.

use super::aggregate::Summary;
use super::check::{self, Space};
use super::group::ClassGroup;
use crate::Result;
use crate::labels::BitPlanes;

/// The value of an overlap when both masks are empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BothEmpty {
    /// There is none, and averages skip the pair: the paper's DSC.
    Undefined,
    /// The masks agree perfectly, 1: the paper's distance for GED, and HM-IoU.
    One,
}

impl BothEmpty {
    fn value(self) -> Option<f64> {
        match self {
            Self::Undefined => None,
            Self::One => Some(1.0),
        }
    }
}

/// The three counts that every overlap of two masks is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overlap {
    /// Voxels of the first mask, |A|.
    pub first: usize,
    /// Voxels of the second mask, |B|.
    pub second: usize,
    /// Voxels of both, |A ∩ B|.
    pub intersection: usize,
}

impl Overlap {
    /// Counts the masks that `group` makes of two maps.
    ///
    /// # Errors
    /// When the maps differ in voxels or classes (the second is named `raters`), or lack a class of the
    /// group.
    pub fn new(first: &BitPlanes, second: &BitPlanes, group: &ClassGroup) -> Result<Self> {
        check::all_in(Space::from(first), &check::RATERS, std::slice::from_ref(second))?;
        group.check(first.classes())?;
        Ok(Self::of_checked(first, second, group))
    }

    /// [`Overlap::new`] for maps and a group that are known to fit.
    pub(super) fn of_checked(first: &BitPlanes, second: &BitPlanes, group: &ClassGroup) -> Self {
        Self {
            first: group.volume(first),
            second: group.volume(second),
            intersection: first.merged_intersection(second, group.classes()),
        }
    }

    /// |A ∪ B|.
    pub fn union(&self) -> usize {
        (self.first + self.second).saturating_sub(self.intersection)
    }

    /// 2|A ∩ B| / (|A| + |B|).
    pub fn dice(&self, both_empty: BothEmpty) -> Option<f64> {
        match self.first + self.second {
            0 => both_empty.value(),
            sum => Some(2.0 * self.intersection as f64 / sum as f64),
        }
    }

    /// |A ∩ B| / |A ∪ B|.
    pub fn iou(&self, both_empty: BothEmpty) -> Option<f64> {
        match self.union() {
            0 => both_empty.value(),
            union => Some(self.intersection as f64 / union as f64),
        }
    }
}

/// The overlap of two maps in every one of `groups`; [`ClassGroup::each`] gives one per foreground class.
///
/// # Errors
/// As [`Overlap::new`].
pub fn overlaps(first: &BitPlanes, second: &BitPlanes, groups: &[ClassGroup]) -> Result<Vec<Overlap>> {
    groups.iter().map(|group| Overlap::new(first, second, group)).collect()
}

/// The paper's DSC and DSC_nod, collected over images.
///
/// Each pair of a prediction and a rater is one value, so that an image with four raters counts four times.
/// DSC leaves out the pairs in which both masks are empty. DSC_nod leaves out every pair whose rater marked
/// nothing, whatever was predicted; a prediction that misses a marked mask counts 0 in both.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PooledDice {
    dsc: Vec<Option<f64>>,
    dsc_nod: Vec<Option<f64>>,
}

impl PooledDice {
    /// Adds one image: its prediction against each of its raters.
    ///
    /// # Errors
    /// When there is no rater, when the maps differ in voxels or classes, or when they lack a class of the
    /// group.
    pub fn push(&mut self, prediction: &BitPlanes, raters: &[BitPlanes], group: &ClassGroup) -> Result<()> {
        check::all_in(Space::from(prediction), &check::RATERS, raters)?;
        group.check(prediction.classes())?;
        for rater in raters {
            let overlap = Overlap::of_checked(prediction, rater, group);
            let dice = overlap.dice(BothEmpty::Undefined);
            self.dsc.push(dice);
            self.dsc_nod.push(dice.filter(|_| overlap.second > 0));
        }
        Ok(())
    }

    /// DSC of each pair, in the order of [`PooledDice::push`]; `None` where both masks were empty.
    pub fn dsc_values(&self) -> &[Option<f64>] {
        &self.dsc
    }

    /// DSC_nod of each pair, in the order of [`PooledDice::push`]; `None` where the rater's mask was empty.
    pub fn dsc_nod_values(&self) -> &[Option<f64>] {
        &self.dsc_nod
    }

    /// Mean DSC ± standard error.
    pub fn dsc(&self) -> Summary {
        Summary::of_scores(&self.dsc)
    }

    /// Mean DSC_nod ± standard error.
    pub fn dsc_nod(&self) -> Summary {
        Summary::of_scores(&self.dsc_nod)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CoreError;
    use crate::labels::LabelMap;

    fn planes(labels: &[u8], classes: usize) -> BitPlanes {
        BitPlanes::new(&LabelMap::new(labels.to_vec(), classes).unwrap())
    }

    #[test]
    fn overlaps_of_classes_and_groups() {
        let a = planes(&[1, 1, 2, 3, 0, 0], 4);
        let b = planes(&[1, 2, 2, 1, 0, 3], 4);
        let mut groups = ClassGroup::each(4);
        groups.push(ClassGroup::new(&[1, 3]).unwrap());
        groups.push(ClassGroup::whole(4).unwrap());
        let dice: Vec<_> = overlaps(&a, &b, &groups)
            .unwrap()
            .iter()
            .map(|o| o.dice(BothEmpty::Undefined).unwrap())
            .collect();
        assert_eq!(dice, [2.0 / 4.0, 2.0 / 3.0, 0.0, 4.0 / 6.0, 8.0 / 9.0]);
        let core = Overlap::new(&a, &b, &groups[3]).unwrap();
        assert_eq!(core, Overlap { first: 3, second: 3, intersection: 2 });
        assert_eq!(core.iou(BothEmpty::Undefined), Some(0.5));
    }

    #[test]
    fn empty_masks_follow_the_choice() {
        let (empty, full) = (planes(&[0, 0], 2), planes(&[1, 1], 2));
        let group = ClassGroup::new(&[1]).unwrap();
        let both = Overlap::new(&empty, &empty, &group).unwrap();
        assert_eq!((both.dice(BothEmpty::Undefined), both.iou(BothEmpty::Undefined)), (None, None));
        assert_eq!((both.dice(BothEmpty::One), both.iou(BothEmpty::One)), (Some(1.0), Some(1.0)));
        let one = Overlap::new(&empty, &full, &group).unwrap();
        assert_eq!((one.dice(BothEmpty::One), one.iou(BothEmpty::One)), (Some(0.0), Some(0.0)));
    }

    #[test]
    fn pooling_follows_the_paper() {
        let group = ClassGroup::new(&[1]).unwrap();
        let raters = [planes(&[0, 0], 2), planes(&[1, 1], 2), planes(&[1, 0], 2)];
        let mut pooled = PooledDice::default();
        pooled.push(&planes(&[1, 0], 2), &raters, &group).unwrap();
        pooled.push(&planes(&[0, 0], 2), &raters, &group).unwrap();
        let third = Some(2.0 / 3.0);
        assert_eq!(pooled.dsc_values(), [Some(0.0), third, Some(1.0), None, Some(0.0), Some(0.0)]);
        assert_eq!(pooled.dsc_nod_values(), [None, third, Some(1.0), None, Some(0.0), Some(0.0)]);
        assert_eq!((pooled.dsc().count, pooled.dsc().skipped), (5, 1));
        assert_eq!((pooled.dsc_nod().count, pooled.dsc_nod().skipped), (4, 2));
    }

    #[test]
    fn misfits_are_errors() {
        let (two, three) = (planes(&[0, 1], 2), planes(&[0, 1, 1], 2));
        let group = ClassGroup::new(&[1]).unwrap();
        let error = Overlap::new(&two, &three, &group).unwrap_err();
        assert!(matches!(error, CoreError::OutOfRange { field: "raters.voxels", index: 0, .. }), "{error}");
        let error = Overlap::new(&two, &planes(&[0, 1], 3), &group).unwrap_err();
        assert!(matches!(error, CoreError::OutOfRange { field: "raters.classes", .. }), "{error}");
        let error = PooledDice::default().push(&two, &[], &group).unwrap_err();
        assert_eq!(error, CoreError::Empty { field: "raters" });
        let absent = ClassGroup::new(&[2]).unwrap();
        assert!(matches!(Overlap::new(&two, &two, &absent), Err(CoreError::Label { field: "group", .. })));
    }
}
