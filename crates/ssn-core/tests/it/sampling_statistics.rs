//! A million draws have the mean and the covariance that the distribution states.

use rayon::prelude::*;
use ssn_core::random::derive_seed;
use ssn_core::{LowRankNormal, Sampler, Steering};
use ssn_testing::noise;

const DISTRIBUTIONS: u64 = 20;
const DRAWS: u64 = 1_000_000;
const BLOCK: u64 = 10_000;
/// Bound in standard errors. 1,300 comparisons exceed five of them by chance once in a thousand runs, and the
/// numbers are the same in every run.
const STANDARD_ERRORS: f64 = 5.0;

fn random_distribution(seed: u64) -> LowRankNormal {
    let pick = |purpose, below: u64| (derive_seed(seed, purpose, 0) % below) as usize;
    noise::distribution(seed, [1 + pick(0, 3), 1 + pick(1, 4), pick(2, 5)], |x| x * x)
}

#[test]
fn draws_have_the_stated_mean_and_covariance() {
    (0..DISTRIBUTIONS).into_par_iter().for_each(|seed| {
        let d = random_distribution(seed);
        let n = d.classes() * d.voxels();
        let sampler = Sampler::new(&d, seed, &Steering::default()).unwrap();
        // Sums of η − μ and of its products.
        let (mut sums, mut products) = (vec![0f64; n], vec![0f64; n * n]);
        for start in (0..DRAWS).step_by(BLOCK as usize) {
            for logits in sampler.logits(start..start + BLOCK).unwrap() {
                let centered: Vec<f64> = logits
                    .iter()
                    .enumerate()
                    .map(|(i, &x)| f64::from(x) - f64::from(d.mean().get(i)))
                    .collect();
                for i in 0..n {
                    sums[i] += centered[i];
                    for j in i..n {
                        products[i * n + j] += centered[i] * centered[j];
                    }
                }
            }
        }
        let draws = DRAWS as f64;
        for i in 0..n {
            let error = (d.covariance(i, i) / draws).sqrt();
            assert!((sums[i] / draws).abs() <= STANDARD_ERRORS * error + 1e-7, "mean of {i}, seed {seed}");
            for j in i..n {
                let (found, expected) = (products[i * n + j] / draws, d.covariance(i, j));
                let spread = d.covariance(i, i) * d.covariance(j, j) + expected * expected;
                let bound = STANDARD_ERRORS * (spread / draws).sqrt() + 1e-6;
                assert!(
                    (found - expected).abs() <= bound,
                    "covariance {i} {j}, seed {seed}: {found} {expected}"
                );
            }
        }
    });
}
