//! Dice of two masks, as the paper's DSC and DSC_nod are made of, and the samples that are better than a prediction.
//!
//! With A and B the voxels of a [`ClassGroup`] in two maps, Dice = 2|A ∩ B| / (|A| + |B|): 0 when exactly one mask is
//! empty, undefined when both are.

use super::check::{self, Space};
use crate::labels::{BitPlanes, LabelMap, MAX_CLASSES};
use crate::{CoreError, Result};

/// A set of foreground classes whose union is one mask, such as whole tumor = {1, 2, 3}. A single class is a group of one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClassGroup {
    classes: Vec<u8>, // ascending, without repetition, without 0
}

impl ClassGroup {
    /// A group of the given classes, in any order; repetitions are dropped.
    ///
    /// # Errors
    /// [`CoreError::Empty`] without a class and [`CoreError::OutOfRange`] for the background, class 0.
    pub fn new(classes: &[u8]) -> Result<Self> {
        if classes.is_empty() {
            return Err(CoreError::Empty { field: "group" });
        }
        if let Some(index) = classes.iter().position(|&class| class == 0) {
            let expected = "a foreground class, 1 or more";
            return Err(CoreError::OutOfRange { field: "group", index, value: 0.0, expected });
        }
        let mut classes = classes.to_vec();
        classes.sort_unstable();
        classes.dedup();
        Ok(Self { classes })
    }

    /// One group for each foreground class of maps with `classes` classes.
    pub fn each(classes: usize) -> Vec<Self> {
        Self::foreground(classes).map(|class| Self { classes: vec![class] }).collect()
    }

    /// All foreground classes of maps with `classes` classes, merged.
    ///
    /// # Errors
    /// [`CoreError::Empty`] when there is no foreground class.
    pub fn whole(classes: usize) -> Result<Self> {
        Self::new(&Self::foreground(classes).collect::<Vec<_>>())
    }

    fn foreground(classes: usize) -> impl Iterator<Item = u8> {
        (1..classes.min(MAX_CLASSES)).map(|class| class as u8)
    }

    /// The classes, ascending.
    pub fn classes(&self) -> &[u8] {
        &self.classes
    }

    /// The number of voxels of the merged mask.
    pub fn volume(&self, planes: &BitPlanes) -> usize {
        self.classes.iter().map(|&class| planes.volume(class)).sum()
    }

    /// The merged mask `[v]`.
    ///
    /// # Errors
    /// [`CoreError::Label`] when the map does not have one of the classes.
    pub fn mask(&self, map: &LabelMap) -> Result<Vec<bool>> {
        self.check(map.classes())?;
        Ok(map.mask(&self.classes))
    }

    /// Fails when maps with `classes` classes do not have one of the group's.
    pub(super) fn check(&self, classes: usize) -> Result<()> {
        match self.classes.iter().position(|&class| usize::from(class) >= classes) {
            None => Ok(()),
            Some(index) => {
                Err(CoreError::Label { field: "group", index, label: self.classes[index], classes })
            }
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
    /// Counts the masks that `group` makes of two maps; errors name the second `raters`.
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

    /// 2|A ∩ B| / (|A| + |B|); `None` where both masks are empty.
    pub fn dice(&self) -> Option<f64> {
        let sum = self.first + self.second;
        (sum > 0).then(|| 2.0 * self.intersection as f64 / sum as f64)
    }

    /// The Dice of the paper's DSC_nod, where the second mask is a rater's: `None` wherever that is empty, whatever was predicted.
    pub fn dice_where_marked(&self) -> Option<f64> {
        self.dice().filter(|_| self.second > 0)
    }
}

/// The share of the samples whose Dice is strictly larger than the prediction's.
///
/// Samples without a Dice are left out; `None` when the prediction has none or no sample has one.
pub fn better_than(prediction: Option<f64>, samples: &[Option<f64>]) -> Option<f64> {
    let prediction = prediction?;
    let defined = samples.iter().flatten().count();
    let better = samples.iter().flatten().filter(|&&dice| dice > prediction).count();
    (defined > 0).then(|| better as f64 / defined as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planes(labels: &[u8], classes: usize) -> BitPlanes {
        BitPlanes::new(&LabelMap::new(labels.to_vec(), classes).unwrap())
    }

    #[test]
    fn groups_are_sets_of_foreground_classes() {
        assert_eq!(ClassGroup::new(&[3, 1, 3]).unwrap().classes(), [1, 3]);
        assert_eq!(ClassGroup::new(&[]).unwrap_err(), CoreError::Empty { field: "group" });
        assert!(matches!(
            ClassGroup::new(&[1, 0]),
            Err(CoreError::OutOfRange { field: "group", index: 1, .. })
        ));
        assert_eq!(ClassGroup::whole(4).unwrap().classes(), [1, 2, 3]);
        assert_eq!(ClassGroup::each(3).len(), 2);
        assert_eq!(ClassGroup::whole(256).unwrap().classes().len(), 255);
        assert!(ClassGroup::whole(1).is_err());
    }

    #[test]
    fn a_class_that_the_map_lacks_is_an_error() {
        let map = LabelMap::new(vec![0, 1, 2], 3).unwrap();
        let core = ClassGroup::new(&[1, 3]).unwrap();
        let error = core.mask(&map).unwrap_err();
        assert_eq!(error, CoreError::Label { field: "group", index: 1, label: 3, classes: 3 });
        assert_eq!(ClassGroup::new(&[2, 1]).unwrap().mask(&map).unwrap(), [false, true, true]);
    }

    #[test]
    fn overlaps_of_classes_and_groups() {
        let a = planes(&[1, 1, 2, 3, 0, 0], 4);
        let b = planes(&[1, 2, 2, 1, 0, 3], 4);
        let mut groups = ClassGroup::each(4);
        groups.push(ClassGroup::new(&[1, 3]).unwrap());
        groups.push(ClassGroup::whole(4).unwrap());
        let overlap = |group| Overlap::new(&a, &b, group).unwrap();
        let dice: Vec<_> = groups.iter().map(|group| overlap(group).dice().unwrap()).collect();
        assert_eq!(dice, [2.0 / 4.0, 2.0 / 3.0, 0.0, 4.0 / 6.0, 8.0 / 9.0]);
        assert_eq!(overlap(&groups[3]), Overlap { first: 3, second: 3, intersection: 2 });
    }

    #[test]
    fn dsc_and_dsc_nod_follow_the_paper() {
        let group = ClassGroup::new(&[1]).unwrap();
        let raters = [planes(&[0, 0], 2), planes(&[1, 1], 2), planes(&[1, 0], 2)];
        let scores = |prediction: &[u8]| {
            let prediction = planes(prediction, 2);
            let overlaps = raters.each_ref().map(|rater| Overlap::new(&prediction, rater, &group).unwrap());
            [overlaps.map(|overlap| overlap.dice()), overlaps.map(|overlap| overlap.dice_where_marked())]
        };
        let third = Some(2.0 / 3.0);
        assert_eq!(scores(&[1, 0]), [[Some(0.0), third, Some(1.0)], [None, third, Some(1.0)]]);
        assert_eq!(scores(&[0, 0]), [[None, Some(0.0), Some(0.0)]; 2]);
    }

    #[test]
    fn samples_are_ranked_against_the_prediction() {
        let planes = |labels: &[u8]| planes(labels, 4);
        let rater = planes(&[1, 1, 0, 0]);
        let samples =
            [planes(&[1, 1, 0, 0]), planes(&[1, 0, 0, 0]), planes(&[0, 0, 1, 1]), planes(&[1, 1, 1, 0])];
        let group = ClassGroup::new(&[1]).unwrap();
        let dice = samples.map(|sample| Overlap::new(&sample, &rater, &group).unwrap().dice());
        assert_eq!(dice, [Some(1.0), Some(2.0 / 3.0), Some(0.0), Some(0.8)]);
        assert_eq!(better_than(dice[1], &dice), Some(0.5));
        // Undefined values stay out.
        assert_eq!(better_than(None, &[None, Some(0.0)]), None);
        assert_eq!(better_than(Some(0.0), &[None, Some(0.0)]), Some(0.0));
        assert_eq!(better_than(Some(0.0), &[None]), None);
    }

    #[test]
    fn misfits_are_errors() {
        let (two, three) = (planes(&[0, 1], 2), planes(&[0, 1, 1], 2));
        let group = ClassGroup::new(&[1]).unwrap();
        let error = Overlap::new(&two, &three, &group).unwrap_err();
        assert!(matches!(error, CoreError::OutOfRange { field: "raters.voxels", index: 0, .. }), "{error}");
        let error = Overlap::new(&two, &planes(&[0, 1], 3), &group).unwrap_err();
        assert!(matches!(error, CoreError::OutOfRange { field: "raters.classes", .. }), "{error}");
        let absent = ClassGroup::new(&[2]).unwrap();
        assert!(matches!(Overlap::new(&two, &two, &absent), Err(CoreError::Label { field: "group", .. })));
    }
}
