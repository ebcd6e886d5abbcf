//! Groups of foreground classes that are scored as one mask, such as whole tumour = {1, 2, 3}.

use crate::labels::{BitPlanes, LabelMap, MAX_CLASSES};
use crate::{CoreError, Result};

/// A set of foreground classes whose union is one mask. A single class is a group of one.
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
