//! Promises of sampling, steering and canonical modes, over random distributions.

use proptest::prelude::*;
use ssn_core::modes::canonicalize;
use ssn_core::{LabelMap, LowRankNormal, SampleSummary, Sampler, Steering};
use ssn_testing::noise::{self, numbers};

fn distribution(seed: u64, c: usize, v: usize, r: usize) -> LowRankNormal {
    noise::distribution(seed, [c, v, r], |x| x * x)
}

prop_compose! {
    fn distributions()(seed in any::<u64>(), c in 1..6usize, v in 1..150usize, r in 0..12usize) -> LowRankNormal {
        distribution(seed, c, v, r)
    }
}

/// The same numbers with each voxel moved to another place.
fn permuted(values: &[f32], v: usize, order: &[usize]) -> Vec<f32> {
    values.chunks(v).flat_map(|row| order.iter().map(|&x| row[x])).collect()
}

fn in_pool<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn temperature_zero_gives_the_mean(d in distributions(), seed in any::<u64>(), i in 0..1000u64) {
        let cold = Steering { temperature: 0.0, ..Steering::default() };
        let logits = Sampler::new(&d, seed, &cold).unwrap().logits(i..i + 1).unwrap();
        prop_assert_eq!(&logits[0], &d.mean().to_f32());
    }

    #[test]
    fn steering_holds_the_noise(d in distributions(), seed in any::<u64>(), t in -3f32..3.0) {
        let plain = Sampler::new(&d, seed, &Steering::default()).unwrap().logits(0..2).unwrap();
        let steering = Steering { temperature: t, ..Steering::default() };
        let steered = Sampler::new(&d, seed, &steering).unwrap().logits(0..2).unwrap();
        let scales = Steering { class_scales: vec![t; d.classes()], ..Steering::default() };
        let scaled = Sampler::new(&d, seed, &scales).unwrap().logits(0..2).unwrap();
        prop_assert_eq!(&steered, &scaled, "one scale for all classes is a temperature");
        for (a, b) in plain.iter().flatten().zip(steered.iter().flatten()).enumerate()
            .map(|(i, (a, b))| (a - d.mean().get(i % (d.classes() * d.voxels())), b - d.mean().get(i % (d.classes() * d.voxels())))) {
            prop_assert!((b - t * a).abs() <= 1e-5 * (1.0 + a.abs()));
        }
    }

    #[test]
    fn without_modes_and_diagonal_noise_only_the_mean_is_left(d in distributions(), seed in any::<u64>()) {
        let still = Steering { mode_weights: vec![0.0; d.rank()], diagonal_noise: false, ..Steering::default() };
        let logits = Sampler::new(&d, seed, &still).unwrap().logits(0..1).unwrap();
        prop_assert_eq!(&logits[0], &d.mean().to_f32());
    }

    #[test]
    fn canonical_modes_keep_the_covariance(seed in any::<u64>(), c in 1..4usize, v in 1..12usize, r in 1..12usize) {
        let d = distribution(seed, c, v, r);
        let modes = canonicalize(&d).unwrap();
        let n = c * v;
        // The scale of P Pᵀ alone: its largest entry is on the diagonal.
        let low_rank = |i: usize| d.covariance(i, i) - f64::from(d.diagonal().get(i));
        let scale = (0..n).map(low_rank).fold(0.0, f64::max);
        for i in 0..n {
            for j in i..n {
                let (before, after) = (d.covariance(i, j), modes.distribution.covariance(i, j));
                prop_assert!((before - after).abs() <= 1e-5 * scale, "{i} {j}: {before} {after}");
            }
        }
        prop_assert!(modes.variances.windows(2).all(|w| w[0] >= w[1]));
        prop_assert!((modes.shares().iter().sum::<f64>() - 1.0).abs() < 1e-9);
        let factor = modes.distribution.factor().to_f32();
        for (k, column) in factor.chunks(n).enumerate() {
            let variance: f64 = column.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
            prop_assert!((variance - modes.variances[k]).abs() <= 1e-5 * modes.variances[0]);
            prop_assert!(column.iter().map(|&x| f64::from(x)).sum::<f64>() >= -1e-4 * modes.variances[0].sqrt());
        }
    }

    #[test]
    fn covariances_do_not_depend_on_the_order_of_voxels(
        seed in any::<u64>(), c in 1..4usize, v in 2..12usize, r in 1..5usize, swap in any::<(usize, usize)>(),
    ) {
        let d = distribution(seed, c, v, r);
        let mut order: Vec<usize> = (0..v).collect();
        order.swap(swap.0 % v, swap.1 % v);
        let of = |values: &ssn_core::Values| permuted(&values.to_f32(), v, &order);
        let moved = LowRankNormal::new(c, v, r, of(d.mean()), of(d.diagonal()), of(d.factor())).unwrap();
        let (a, b) = (canonicalize(&d).unwrap(), canonicalize(&moved).unwrap());
        for (x, y) in a.variances.iter().zip(&b.variances) {
            prop_assert!((x - y).abs() <= 1e-9 * a.variances[0]);
        }
        let place = |i: usize| i / v * v + order[i % v];
        for (i, j) in (0..c * v).flat_map(|i| (i..c * v).map(move |j| (i, j))) {
            let covariance = d.covariance(place(i), place(j));
            prop_assert_eq!(moved.covariance(i, j), covariance);
            let canonical = b.distribution.covariance(i, j);
            prop_assert!((canonical - covariance).abs() <= 1e-5 * a.variances[0], "{i} {j}: {canonical} {covariance}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_number_of_threads_changes_no_bit(
        seed in any::<u64>(), c in 1..4usize, v in 1..5000usize, r in 0..4usize, threads in 2..6usize,
    ) {
        let d = distribution(seed, c, v, r);
        let rater = LabelMap::new((0..v).map(|x| (x % 2) as u8).collect(), 2).unwrap();
        let raters = [rater];
        let run = || {
            let sampler = Sampler::new(&d, seed, &Steering::default()).unwrap();
            let mut summary = SampleSummary::new(&sampler, &raters).unwrap();
            summary.extend(&sampler, 0..2).unwrap();
            let likelihood = summary.log_likelihoods().unwrap()[0].to_bits();
            (sampler.labels(0..2).unwrap(), likelihood, summary.mean_probabilities().unwrap())
        };
        prop_assert_eq!(in_pool(1, run), in_pool(threads, run));
    }
}

#[test]
fn canonical_modes_of_a_large_distribution_keep_the_covariance_with_any_number_of_threads() {
    // More logits than one chunk of the computation.
    let (c, v, r) = (2, 20_011, 5);
    let d = distribution(3, c, v, r);
    let modes = in_pool(1, || canonicalize(&d)).unwrap();
    assert_eq!(modes, in_pool(3, || canonicalize(&d)).unwrap());
    for k in 0..2000 {
        let (i, j) = (k * 17 % (c * v), k * 7919 % (c * v));
        let (before, after) = (d.covariance(i, j), modes.distribution.covariance(i, j));
        assert!((before - after).abs() <= 1e-4, "{i} {j}: {before} {after}");
    }
}

#[test]
fn half_precision_is_widened_exactly() {
    use half::f16;
    let (c, v, r) = (3, 1000, 4);
    let halves =
        |stream, n| numbers(8, stream, n).into_iter().map(|x| f16::from_f32(x.abs())).collect::<Vec<_>>();
    let wide = |values: &[f16]| values.iter().map(|x| x.to_f32()).collect::<Vec<f32>>();
    let (mean, diagonal, factor) = (halves(0, c * v), halves(1, c * v), halves(2, r * c * v));
    let single = LowRankNormal::new(c, v, r, wide(&mean), wide(&diagonal), wide(&factor)).unwrap();
    let half = LowRankNormal::new(c, v, r, mean, diagonal, factor).unwrap();
    let logits = |d: &LowRankNormal| Sampler::new(d, 5, &Steering::default()).unwrap().logits(0..3).unwrap();
    assert_eq!(logits(&half), logits(&single));
}

#[test]
fn steering_stays_finite() {
    let d = LowRankNormal::new(2, 3, 1, vec![1e20f32; 6], vec![1e20f32; 6], vec![-1e20f32; 6]).unwrap();
    let hot = Steering { temperature: 1e6, mode_weights: vec![1e6], ..Steering::default() };
    let logits = Sampler::new(&d, 0, &hot).unwrap().logits(0..50).unwrap();
    assert!(logits.iter().flatten().all(|x| x.is_finite()));
    let hotter = Steering { temperature: 1e4, class_scales: vec![1e4; 2], ..Steering::default() };
    let error = Sampler::new(&d, 0, &hotter).unwrap_err().to_string();
    assert_eq!(error, "temperature times class_scales[0] is 100000000, but it must be between -1e6 and 1e6");
}
