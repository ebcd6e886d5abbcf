//! Distributions of random numbers.

use ssn_core::LowRankNormal;
use ssn_core::random::fill_normals;

/// Returns numbers of the standard normal distribution.
pub fn numbers(seed: u64, stream: u32, n: usize) -> Vec<f32> {
    let mut out = vec![0.0; n];
    fill_normals(seed, stream, 0, &mut out);
    out
}

/// Returns a distribution of c classes, v voxels and rank r; `variance` makes its diagonal of such numbers.
///
/// # Panics
/// If a number is not finite.
pub fn distribution(seed: u64, [c, v, r]: [usize; 3], variance: impl Fn(f32) -> f32) -> LowRankNormal {
    let diagonal: Vec<f32> = numbers(seed, 1, c * v).into_iter().map(variance).collect();
    LowRankNormal::new(c, v, r, numbers(seed, 0, c * v), diagonal, numbers(seed, 2, r * c * v)).unwrap()
}
