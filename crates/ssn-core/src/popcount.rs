//! The loop behind every overlap: how many bits two slices of words have in common.
//!
//! Carry-save adders (the method of Harley and Seal) add sixteen vectors bit by bit before one of them is
//! counted, so that most words cost two or three logical instructions. Compilers leave the plain loop at one
//! word per cycle.

use pulp::bytemuck::{Pod, cast_slice};
use pulp::{Arch, Simd, WithSimd};

/// The number of bits set in both slices, which are compared up to the shorter.
pub(crate) fn common_bits(a: &[u64], b: &[u64]) -> u64 {
    Arch::new().dispatch(CommonBits { a, b })
}

/// [`common_bits`] as a value, so that it is compiled once for each set of vector instructions.
struct CommonBits<'a> {
    a: &'a [u64],
    b: &'a [u64],
}

impl WithSimd for CommonBits<'_> {
    type Output = u64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> u64 {
        count_common(simd, self.a, self.b)
    }
}

/// [`common_bits`] for callers that are themselves compiled for vector instructions.
#[inline(always)]
pub(crate) fn count_common<S: Simd>(simd: S, a: &[u64], b: &[u64]) -> u64 {
    let length = a.len().min(b.len());
    let (a_vectors, a_rest) = S::as_simd_u64s(&a[..length]);
    let (b_vectors, b_rest) = S::as_simd_u64s(&b[..length]);
    let (a_groups, a_single) = a_vectors.as_chunks::<16>();
    let (b_groups, b_single) = b_vectors.as_chunks::<16>();
    let mut sums = CarrySave::new(simd);
    let mut sixteens = 0;
    for (x, y) in a_groups.iter().zip(b_groups) {
        sixteens += count(sums.add_sixteen(simd, x, y));
    }
    let single: u64 = a_single.iter().zip(b_single).map(|(&x, &y)| count(simd.and_u64s(x, y))).sum();
    let rest: u64 = a_rest.iter().zip(b_rest).map(|(x, y)| count(x & y)).sum();
    16 * sixteens + sums.total() + single + rest
}

/// Counts bits by place value: the vectors hold the binary digits, 1 to 8, of the number of ones seen at each
/// bit.
struct CarrySave<V> {
    ones: V,
    twos: V,
    fours: V,
    eights: V,
}

impl<V: Pod> CarrySave<V> {
    #[inline(always)]
    fn new<S: Simd<u64s = V>>(simd: S) -> Self {
        let zero = simd.splat_u64s(0);
        Self { ones: zero, twos: zero, fours: zero, eights: zero }
    }

    /// Adds `x[i] & y[i]` for sixteen i and returns the carries, each worth sixteen.
    #[inline(always)]
    fn add_sixteen<S: Simd<u64s = V>>(&mut self, simd: S, x: &[V; 16], y: &[V; 16]) -> V {
        let (first, second) = (self.add_eight(simd, x, y, 0), self.add_eight(simd, x, y, 8));
        add(simd, &mut self.eights, first, second)
    }

    /// Adds eight of them and returns the carries, each worth eight.
    #[inline(always)]
    fn add_eight<S: Simd<u64s = V>>(&mut self, simd: S, x: &[V; 16], y: &[V; 16], at: usize) -> V {
        let (first, second) = (self.add_four(simd, x, y, at), self.add_four(simd, x, y, at + 4));
        add(simd, &mut self.fours, first, second)
    }

    /// Adds four of them and returns the carries, each worth four.
    #[inline(always)]
    fn add_four<S: Simd<u64s = V>>(&mut self, simd: S, x: &[V; 16], y: &[V; 16], at: usize) -> V {
        let both = |i: usize| simd.and_u64s(x[at + i], y[at + i]);
        let first = add(simd, &mut self.ones, both(0), both(1));
        let second = add(simd, &mut self.ones, both(2), both(3));
        add(simd, &mut self.twos, first, second)
    }

    /// The number of ones that have not left as carries.
    #[inline(always)]
    fn total(self) -> u64 {
        count(self.ones) + 2 * count(self.twos) + 4 * count(self.fours) + 8 * count(self.eights)
    }
}

/// A full adder at every bit: leaves the sum in `sum` and returns the carry.
#[inline(always)]
fn add<S: Simd>(simd: S, sum: &mut S::u64s, x: S::u64s, y: S::u64s) -> S::u64s {
    let half = simd.xor_u64s(*sum, x);
    let carry = simd.or_u64s(simd.and_u64s(*sum, x), simd.and_u64s(half, y));
    *sum = simd.xor_u64s(half, y);
    carry
}

/// The bits set in one vector.
#[inline(always)]
fn count<V: Pod>(vector: V) -> u64 {
    let words: &[u64] = cast_slice(std::slice::from_ref(&vector));
    words.iter().map(|word| u64::from(word.count_ones())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_is_counted() {
        let word = |i: u64, k: u64| (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15 ^ k).rotate_left(i as u32);
        for length in (0..70).chain([127, 128, 129, 500, 1023, 4099]) {
            let a: Vec<u64> = (0..length).map(|i| word(i, 0)).collect();
            let b: Vec<u64> = (0..length + 3).map(|i| word(i, 77)).collect();
            let expected: u64 = a.iter().zip(&b).map(|(x, y)| u64::from((x & y).count_ones())).sum();
            assert_eq!(common_bits(&a, &b), expected, "{length} words");
            assert_eq!(common_bits(&b, &a), expected, "{length} words");
        }
        assert_eq!(common_bits(&[u64::MAX; 999], &[u64::MAX; 999]), 999 * 64);
    }
}
