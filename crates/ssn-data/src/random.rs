//! Counter-based random streams: each is a function of a seed, a purpose and a number.

use ssn_core::random::{derive_seed, philox4x32};

/// What a stream of random choices is for; different purposes never share numbers.
///
/// The values are part of the promise that a seed always gives the same batches: never change one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Purpose {
    Order = 16,
    /// Where patches are cut, and which rater is the target.
    Patch = 17,
    Augment = 18,
    Split = 19,
    Synthetic = 20,
}

#[derive(Debug, Clone)]
pub struct RandomStream {
    key: [u32; 2],
    counter: u64,
    words: [u32; 4],
    used: usize,
}

impl RandomStream {
    /// The stream number `index` of a purpose.
    pub fn new(seed: u64, purpose: Purpose, index: u64) -> Self {
        let key = derive_seed(seed, purpose as u32, index);
        Self { key: [key as u32, (key >> 32) as u32], counter: 0, words: [0; 4], used: 4 }
    }

    pub fn next_u32(&mut self) -> u32 {
        if self.used == 4 {
            let [low, high] = [self.counter as u32, (self.counter >> 32) as u32];
            self.words = philox4x32([low, high, 0, 0], self.key);
            self.counter += 1;
            self.used = 0;
        }
        self.used += 1;
        self.words[self.used - 1]
    }

    /// A number in [0, 1), a multiple of 2⁻⁵³.
    pub fn uniform(&mut self) -> f64 {
        let bits = u64::from(self.next_u32()) << 32 | u64::from(self.next_u32());
        (bits >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn uniform_in(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }

    pub fn chance(&mut self, probability: f64) -> bool {
        self.uniform() < probability
    }

    /// A whole number below `n`, which must not be 0; every one equally often.
    pub fn below(&mut self, n: u64) -> u64 {
        debug_assert!(n > 0);
        // Multiply and take the high half; the few values that would be favored are drawn again.
        let limit = n.wrapping_neg() % n;
        loop {
            let bits = u64::from(self.next_u32()) << 32 | u64::from(self.next_u32());
            let product = u128::from(bits) * u128::from(n);
            if product as u64 >= limit {
                return (product >> 64) as u64;
            }
        }
    }

    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last as u64 + 1) as usize;
            items.swap(last, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn below_gives_every_number_equally_often() {
        let mut stream = RandomStream::new(7, Purpose::Order, 0);
        let mut counts = [0u32; 7];
        for _ in 0..70_000 {
            counts[stream.below(7) as usize] += 1;
        }
        // Standard deviation √(70000 · 1/7 · 6/7) ≈ 93.
        assert!(counts.iter().all(|&count| count.abs_diff(10_000) < 470), "{counts:?}");
    }

    #[test]
    fn normal_numbers_have_mean_0_and_variance_1() {
        let mut stream = RandomStream::new(7, Purpose::Augment, 3);
        let values: Vec<f64> = (0..40_000).map(|_| stream.normal()).collect();
        let mean = values.iter().sum::<f64>() / 40_000.0;
        let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 40_000.0;
        assert!(mean.abs() < 0.025 && (variance - 1.0).abs() < 0.036, "{mean} {variance}");
    }

    #[test]
    fn streams_of_different_purposes_and_numbers_differ() {
        let first = |purpose, index| RandomStream::new(1, purpose, index).next_u32();
        let words = [first(Purpose::Order, 0), first(Purpose::Patch, 0), first(Purpose::Order, 1)];
        assert!(words[0] != words[1] && words[0] != words[2] && words[1] != words[2]);
    }
}
