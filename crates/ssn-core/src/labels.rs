//! Label maps: one class per voxel, plain and bit-packed.
//!
//! A [`LabelMap`] is what sampling and readers hand over; its labels are checked once, on construction. A
//! [`BitPlanes`] is the same map with one bit per voxel and foreground class, an eighth of the size for two
//! classes, on which overlaps are a bitwise AND and a population count. Neither knows the rank of space.

use std::borrow::Cow;

use pulp::{Arch, Simd, WithSimd};

use crate::popcount::common_bits;
use crate::{CoreError, Result};

/// The colors of classes 1, 2, … in figures, the viewer and Python, told apart with any color vision (after Okabe and Ito).
/// Further classes begin again at the first.
pub const CLASS_COLORS: [[u8; 3]; 7] = [
    [0xe6, 0x9f, 0x00],
    [0x56, 0xb4, 0xe9],
    [0xcc, 0x79, 0xa7],
    [0x00, 0x9e, 0x73],
    [0xf0, 0xe4, 0x42],
    [0xd5, 0x5e, 0x00],
    [0x00, 0x72, 0xb2],
];

/// The most classes that a label of one byte can name.
pub const MAX_CLASSES: usize = 256;

/// Voxels per word of a bit plane.
const WORD: usize = u64::BITS as usize;

/// The lowest bit of each of eight bytes.
const LOW_BITS: u64 = 0x0101_0101_0101_0101;

/// Multiplying eight bytes of 0 or 1 by this collects them, in order, in the highest byte: the factor has
/// bits 56 − 7k, so byte k (bit 8k) lands on bit 56 + k and no other product reaches or carries into that
/// byte.
const GATHER: u64 = 0x0102_0408_1020_4080;

/// A segmentation: the class of each of `v` voxels, 0 being the background.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelMap {
    labels: Vec<u8>,
    classes: usize,
}

impl LabelMap {
    /// Checks the labels `[v]` of a map with `classes` classes, the background included.
    ///
    /// # Errors
    /// [`CoreError::OutOfRange`] unless 2 ≤ `classes` ≤ [`MAX_CLASSES`], [`CoreError::Empty`] without voxels,
    /// and [`CoreError::Label`] for the first label that is not below `classes`.
    pub fn new(labels: Vec<u8>, classes: usize) -> Result<Self> {
        if !(2..=MAX_CLASSES).contains(&classes) {
            let expected = "2 to 256, the background included";
            return Err(CoreError::OutOfRange {
                field: "classes",
                index: 0,
                value: classes as f64,
                expected,
            });
        }
        // The maximum runs vectorized over all labels; the search for the culprit only in the error case.
        let Some(largest) = labels.iter().copied().max() else {
            return Err(CoreError::Empty { field: "labels" });
        };
        if usize::from(largest) >= classes {
            let index = labels.iter().position(|&label| usize::from(label) >= classes).unwrap_or(0);
            return Err(CoreError::Label { field: "labels", index, label: labels[index], classes });
        }
        Ok(Self { labels, classes })
    }

    /// The labels `[v]`.
    pub fn labels(&self) -> &[u8] {
        &self.labels
    }

    /// Gives the labels `[v]` back.
    pub fn into_labels(self) -> Vec<u8> {
        self.labels
    }

    /// The number of classes `c`, the background included.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// The number of voxels `v`, at least 1.
    pub fn voxels(&self) -> usize {
        self.labels.len()
    }

    /// The number of voxels of one class; 0 for a class that the map does not have.
    pub fn volume(&self, class: u8) -> usize {
        self.labels.iter().filter(|&&label| label == class).count()
    }

    /// The mask `[v]` of the voxels whose label is one of `classes`.
    pub fn mask(&self, classes: &[u8]) -> Vec<bool> {
        let mut member = [false; MAX_CLASSES];
        for &class in classes {
            member[usize::from(class)] = true;
        }
        self.labels.iter().map(|&label| member[usize::from(label)]).collect()
    }
}

/// A label map as one bit plane per foreground class 1 to `c` − 1, with the voxel count of each class.
///
/// The background has no plane: it is what the others leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BitPlanes {
    words: Vec<u64>, // [c − 1, words per plane]; bits past the last voxel are 0
    volumes: Vec<usize>,
    voxels: usize,
}

impl BitPlanes {
    /// Packs a label map.
    pub fn new(map: &LabelMap) -> Self {
        let per_plane = map.voxels().div_ceil(WORD);
        let mut words = vec![0; (map.classes - 1) * per_plane];
        Arch::new().dispatch(Pack { labels: &map.labels, per_plane, words: &mut words });
        let foreground: Vec<usize> =
            words.chunks_exact(per_plane).map(|plane| common_bits(plane, plane) as usize).collect();
        let background = map.voxels() - foreground.iter().sum::<usize>();
        let volumes = std::iter::once(background).chain(foreground).collect();
        Self { words, volumes, voxels: map.voxels() }
    }

    /// The number of classes `c`, the background included.
    pub fn classes(&self) -> usize {
        self.volumes.len()
    }

    /// The number of voxels `v`, at least 1.
    pub fn voxels(&self) -> usize {
        self.voxels
    }

    /// The number of voxels of one class, counted on construction; 0 for a class that the map does not have.
    pub fn volume(&self, class: u8) -> usize {
        self.volumes.get(usize::from(class)).copied().unwrap_or(0)
    }

    /// The number of voxels of every class `[c]`, the background first.
    pub fn volumes(&self) -> &[usize] {
        &self.volumes
    }

    /// The plane of a foreground class, 64 voxels per word, the first in the lowest bit; empty for the
    /// background and for a class that the map does not have.
    pub fn plane(&self, class: u8) -> &[u64] {
        let per_plane = self.voxels.div_ceil(WORD);
        let start = match usize::from(class).checked_sub(1) {
            Some(plane) if plane + 1 < self.classes() => plane * per_plane,
            _ => return &[],
        };
        &self.words[start..start + per_plane]
    }

    /// The number of voxels that have the foreground class `class` in both maps, |A ∩ B|.
    ///
    /// Only the voxels that both maps have are compared, and a class without a plane has none; the metrics
    /// check that the maps agree before they count.
    pub fn intersection(&self, other: &Self, class: u8) -> usize {
        common_bits(self.plane(class), other.plane(class)) as usize
    }

    /// |A ∩ B| of the masks that the given foreground classes make together, in each map.
    pub fn merged_intersection(&self, other: &Self, classes: &[u8]) -> usize {
        common_bits(&self.merged(classes), &other.merged(classes)) as usize
    }

    /// The voxels `[v]` that have one of the given foreground classes.
    pub fn mask(&self, classes: &[u8]) -> Vec<bool> {
        let merged = self.merged(classes);
        (0..self.voxels)
            .map(|x| merged.get(x / WORD).is_some_and(|word| word >> (x % WORD) & 1 > 0))
            .collect()
    }

    /// The union of the planes of several classes.
    fn merged(&self, classes: &[u8]) -> Cow<'_, [u64]> {
        let [first, rest @ ..] = classes else { return Cow::Borrowed(&[]) };
        let mut union = Cow::Borrowed(self.plane(*first));
        for &class in rest {
            let words = union.to_mut();
            let plane = self.plane(class);
            // A class without a plane must not shorten the union, nor an absent first class empty it.
            words.resize(words.len().max(plane.len()), 0);
            words.iter_mut().zip(plane).for_each(|(word, &bits)| *word |= bits);
        }
        union
    }
}

/// The packing of labels `[v]` into planes `[c − 1, words]`.
struct Pack<'a> {
    labels: &'a [u8],
    per_plane: usize,
    words: &'a mut [u64],
}

impl WithSimd for Pack<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let (full, rest) = self.labels.as_chunks::<WORD>();
        let foreground = self.words.len() / self.per_plane;
        for (at, labels) in full.iter().enumerate() {
            pack_word(labels, at, self.per_plane, foreground, self.words);
        }
        if !rest.is_empty() {
            // Padding with the background leaves the bits past the end at 0.
            let mut labels = [0; WORD];
            labels[..rest.len()].copy_from_slice(rest);
            pack_word(&labels, full.len(), self.per_plane, foreground, self.words);
        }
    }
}

/// Writes word `at` of every plane.
///
/// The labels are first cut into their binary digits, one word per digit; the plane of a class is the AND of
/// the digits that its number has and the complements of those that it has not. That takes log₂ c passes over
/// the labels instead of c.
#[inline(always)]
fn pack_word(labels: &[u8; WORD], at: usize, per_plane: usize, foreground: usize, words: &mut [u64]) {
    let used = (usize::BITS - foreground.leading_zeros()) as usize;
    let mut digits = [0u64; u8::BITS as usize];
    for (place, digit) in digits.iter_mut().enumerate().take(used) {
        for (byte, eight) in labels.as_chunks::<8>().0.iter().enumerate() {
            let bits = (u64::from_le_bytes(*eight) >> place) & LOW_BITS;
            *digit |= (bits.wrapping_mul(GATHER) >> (WORD - 8)) << (8 * byte);
        }
    }
    for class in 1..=foreground {
        let mut word = u64::MAX;
        for (place, digit) in digits.iter().enumerate().take(used) {
            word &= if class >> place & 1 == 1 { *digit } else { !digit };
        }
        words[(class - 1) * per_plane + at] = word;
    }
}

/// The row of the largest of the values `[c, v]` at each voxel, the first of equals: `[v]`.
pub fn largest<T: Copy + PartialOrd>(values: &[T], voxels: usize) -> Vec<u8> {
    let mut best = values[..voxels].to_vec();
    let mut labels = vec![0u8; voxels];
    for (label, row) in values.chunks_exact(voxels).enumerate().skip(1) {
        for ((best, found), &value) in best.iter_mut().zip(&mut labels).zip(row) {
            if value > *best {
                (*best, *found) = (value, label as u8);
            }
        }
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Labels that use every class and no simple period.
    fn labels(voxels: usize, classes: usize) -> Vec<u8> {
        (0..voxels).map(|i| ((i * i + i / 7) % classes) as u8).collect()
    }

    #[test]
    fn bad_labels_are_named() {
        let error = LabelMap::new(vec![0, 1, 3, 4], 3).unwrap_err();
        assert_eq!(error, CoreError::Label { field: "labels", index: 2, label: 3, classes: 3 });
        assert_eq!(LabelMap::new(vec![], 2).unwrap_err(), CoreError::Empty { field: "labels" });
        for classes in [0, 1, 257] {
            let error = LabelMap::new(vec![0], classes).unwrap_err();
            assert!(matches!(error, CoreError::OutOfRange { field: "classes", .. }), "{error}");
        }
    }

    #[test]
    fn planes_hold_the_labels() {
        for (voxels, classes) in [(1, 2), (63, 2), (64, 3), (65, 4), (130, 5), (1000, 17), (700, 256)] {
            let map = LabelMap::new(labels(voxels, classes), classes).unwrap();
            let planes = BitPlanes::new(&map);
            assert_eq!((planes.classes(), planes.voxels()), (classes, voxels));
            for class in 0..=u8::MAX {
                assert_eq!(planes.volume(class), map.volume(class), "volume of class {class} of {classes}");
                for (word, &bits) in planes.plane(class).iter().enumerate() {
                    for bit in 0..WORD {
                        let expected = map.labels().get(word * WORD + bit) == Some(&class);
                        assert_eq!(bits >> bit & 1 == 1, expected, "class {class}, word {word}, bit {bit}");
                    }
                }
            }
        }
    }

    #[test]
    fn intersections_count_voxels() {
        let a = LabelMap::new(labels(333, 4), 4).unwrap();
        let b = LabelMap::new((0..333).map(|i| (i / 3 % 4) as u8).collect(), 4).unwrap();
        let (p, q) = (BitPlanes::new(&a), BitPlanes::new(&b));
        let count = |set: &[u8]| {
            let both = a.labels().iter().zip(b.labels());
            both.filter(|(x, y)| set.contains(x) && set.contains(y)).count()
        };
        for class in 1..4 {
            assert_eq!(p.intersection(&q, class), count(&[class]));
        }
        for set in [&[1, 3][..], &[1, 2, 3], &[2], &[]] {
            assert_eq!(p.merged_intersection(&q, set), count(set), "{set:?}");
        }
        assert_eq!(p.merged_intersection(&q, &[9, 1]), count(&[1]));
    }

    #[test]
    fn a_mask_merges_classes() {
        let map = LabelMap::new(vec![0, 1, 2, 3, 1], 4).unwrap();
        assert_eq!(map.mask(&[1, 3]), [false, true, false, true, true]);
        assert_eq!(map.into_labels(), [0, 1, 2, 3, 1]);
    }
}
