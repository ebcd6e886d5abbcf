//! Sets of voxels from which one can be picked at random without looking at the whole volume.

/// Bits of one word.
const WORD: usize = 64;
/// Words between two entries of the running count.
const BLOCK: usize = 8;

/// A set of voxels: one bit each, and the number of members before every block of 512.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VoxelSet {
    words: Vec<u64>,
    before: Vec<u32>,
    len: usize,
}

impl VoxelSet {
    /// The voxels below `voxels` for which `member` is true.
    pub fn new(voxels: usize, member: impl Fn(usize) -> bool) -> Self {
        let mut words = vec![0u64; voxels.div_ceil(WORD)];
        let mut before = Vec::with_capacity(words.len().div_ceil(BLOCK));
        let mut len = 0;
        for (number, word) in words.iter_mut().enumerate() {
            if number % BLOCK == 0 {
                before.push(len as u32);
            }
            let first = number * WORD;
            for bit in 0..WORD.min(voxels - first) {
                *word |= u64::from(member(first + bit)) << bit;
            }
            len += word.count_ones() as usize;
        }
        Self { words, before, len }
    }

    /// How many voxels are in the set.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the set has no voxels.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The member number `k`, in the order of the volume; nothing if there are not so many.
    pub fn nth(&self, k: usize) -> Option<usize> {
        if k >= self.len {
            return None;
        }
        let block = self.before.partition_point(|&before| before as usize <= k) - 1;
        let mut left = (k - self.before[block] as usize) as u32;
        for number in block * BLOCK..self.words.len() {
            let mut word = self.words[number];
            if left < word.count_ones() {
                for _ in 0..left {
                    word &= word - 1;
                }
                return Some(number * WORD + word.trailing_zeros() as usize);
            }
            left -= word.count_ones();
        }
        None
    }

    /// The bytes that the set takes.
    pub fn bytes(&self) -> usize {
        8 * self.words.len() + 4 * self.before.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn members_are_found_in_order(bits in prop::collection::vec(prop::bool::weighted(0.2), 0..3000)) {
            let set = VoxelSet::new(bits.len(), |voxel| bits[voxel]);
            let expected: Vec<usize> = (0..bits.len()).filter(|&voxel| bits[voxel]).collect();
            let found: Vec<usize> = (0..set.len()).filter_map(|k| set.nth(k)).collect();
            prop_assert_eq!(found, expected);
            prop_assert_eq!(set.nth(set.len()), None);
        }
    }
}
