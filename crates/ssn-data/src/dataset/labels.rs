//! How the values of a label file become classes.

use serde::{Deserialize, Serialize};

/// The rule from stored values to classes 0, 1, …
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LabelCoding {
    /// The value is the class.
    #[default]
    Plain,
    /// Class k is stored as the k-th of these values, such as `[0, 255]`.
    Values(Vec<u8>),
    /// Values above this one are class 1, others class 0: for masks that lost their exact values, as in JPEG.
    Threshold(u8),
}

/// A label map with more values than this was not drawn by hand.
pub const MOST_CLASSES: usize = 32;
/// Values above this are foreground in masks that lost their exact values.
pub const HALF: u8 = 127;

/// Stored values that no class has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownLabels {
    /// The values, in order.
    pub values: Vec<u8>,
    /// How many voxels have one of them.
    pub voxels: usize,
}

impl LabelCoding {
    /// Replaces stored values by classes below `classes`; unknown values become background and are returned.
    pub fn decode(&self, labels: &mut [u8], classes: usize) -> Option<UnknownLabels> {
        let table = self.table(classes);
        let mut seen = [0usize; 256];
        for label in labels.iter_mut() {
            seen[usize::from(*label)] += 1;
            *label = table[usize::from(*label)].unwrap_or(0);
        }
        let strange = |value: &u8| seen[usize::from(*value)] > 0 && table[usize::from(*value)].is_none();
        let values: Vec<u8> = (0..=u8::MAX).filter(strange).collect();
        let voxels = values.iter().map(|&value| seen[usize::from(value)]).sum();
        (!values.is_empty()).then_some(UnknownLabels { values, voxels })
    }

    /// The stored value of every class, where classes are not stored as their numbers.
    pub fn stored(&self) -> Option<Vec<u8>> {
        match self {
            Self::Plain => None,
            Self::Values(values) => Some(values.clone()),
            Self::Threshold(_) => Some(vec![0, u8::MAX]),
        }
    }

    fn table(&self, classes: usize) -> [Option<u8>; 256] {
        let class = |value: usize| -> Option<u8> {
            let class = match self {
                Self::Plain => value,
                Self::Values(values) => values.iter().position(|&stored| usize::from(stored) == value)?,
                Self::Threshold(threshold) => usize::from(value > usize::from(*threshold)),
            };
            (class < classes).then_some(class as u8)
        };
        std::array::from_fn(class)
    }

    /// The rule and the names of the classes for files in which these values occur.
    ///
    /// Values without gaps are classes as they are; with gaps, as 0 and 255 or 0, 1, 2 and 4, each value that
    /// occurs is a class, named after its value. More values than classes have, up to 255, are a mask that was
    /// compressed or interpolated.
    pub fn for_values(present: &[bool; 256]) -> (Self, Vec<String>) {
        let mut values: Vec<u8> = (0..=u8::MAX).filter(|&v| v == 0 || present[usize::from(v)]).collect();
        if values.len() == 1 {
            values.push(1);
        }
        if values.len() > MOST_CLASSES && values.ends_with(&[u8::MAX]) {
            return (Self::Threshold(HALF), vec!["background".to_owned(), "foreground".to_owned()]);
        }
        let plain = values.iter().enumerate().all(|(class, &value)| class == usize::from(value));
        let names = match values[..] {
            [_, _] => vec!["background".to_owned(), "foreground".to_owned()],
            _ => std::iter::once("background".to_owned())
                .chain(values[1..].iter().map(|value| format!("label_{value}")))
                .collect(),
        };
        (if plain { Self::Plain } else { Self::Values(values) }, names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_become_classes() {
        let decode = |coding: LabelCoding, classes, mut labels: Vec<u8>| {
            let strangers = coding.decode(&mut labels, classes);
            (labels, strangers)
        };
        assert_eq!(decode(LabelCoding::Plain, 3, vec![0, 2, 1]), (vec![0, 2, 1], None));
        let strangers = UnknownLabels { values: vec![3, 9], voxels: 3 };
        assert_eq!(decode(LabelCoding::Plain, 3, vec![3, 2, 9, 9]), (vec![0, 2, 0, 0], Some(strangers)));
        assert_eq!(decode(LabelCoding::Values(vec![0, 255]), 2, vec![255, 0]), (vec![1, 0], None));
        assert_eq!(decode(LabelCoding::Threshold(127), 2, vec![127, 128, 255]), (vec![0, 1, 1], None));
    }

    #[test]
    fn the_rule_follows_from_the_values() {
        let rule =
            |values: &[u8]| LabelCoding::for_values(&std::array::from_fn(|v| values.contains(&(v as u8))));
        assert_eq!(rule(&[0, 1]).0, LabelCoding::Plain);
        assert_eq!(rule(&[]).1, ["background", "foreground"]);
        assert_eq!(rule(&[0, 255]).0, LabelCoding::Values(vec![0, 255]));
        let (coding, names) = rule(&[0, 1, 2, 4]);
        assert_eq!(coding, LabelCoding::Values(vec![0, 1, 2, 4]));
        assert_eq!(names, ["background", "label_1", "label_2", "label_4"]);
        assert_eq!(rule(&[1, 2, 3]).0, LabelCoding::Plain);
        assert_eq!(rule(&(0..=103).collect::<Vec<u8>>()).0, LabelCoding::Plain);
        let (coding, names) = rule(&(0..=255).step_by(5).collect::<Vec<u8>>());
        assert_eq!((coding, names.len()), (LabelCoding::Threshold(127), 2));
    }
}
