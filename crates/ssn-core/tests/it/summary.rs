//! Streaming summaries equal what one computes from samples that were kept.

use ssn_core::{LabelMap, LowRankNormal, SampleSummary, Sampler, Steering};
use ssn_testing::noise;

fn distribution(c: usize, v: usize, r: usize) -> LowRankNormal {
    noise::distribution(11, [c, v, r], |x| 0.1 * x * x)
}

/// log p(label | logits) of one voxel in double precision.
fn log_probability(logits: &[f64], label: usize) -> f64 {
    match logits {
        [x] => -(1.0 + (if label == 1 { -x } else { *x }).exp()).ln(),
        _ => logits[label] - logits.iter().map(|x| x.exp()).sum::<f64>().ln(),
    }
}

#[test]
fn summaries_equal_their_definitions() {
    for (c, v) in [(1, 50), (2, 64), (4, 2500)] {
        let d = distribution(c, v, 3);
        let labels = c.max(2);
        let rater = LabelMap::new((0..v).map(|x| (x % labels) as u8).collect(), labels).unwrap();
        let raters = [rater.clone()];
        let sampler = Sampler::new(&d, 3, &Steering::default()).unwrap();
        let mut summary = SampleSummary::new(&sampler, &raters).unwrap();
        summary.extend(&sampler, 0..10).unwrap();
        summary.extend(&sampler, 10..25).unwrap();
        assert_eq!(summary.samples(), 25);

        let logits = sampler.logits(0..25).unwrap();
        let at =
            |sample: &Vec<f32>, x: usize| (0..c).map(|k| f64::from(sample[k * v + x])).collect::<Vec<_>>();

        let mean = summary.mean_probabilities().unwrap();
        let entropy = summary.marginal_entropy().unwrap();
        for x in 0..v {
            let p =
                |label| logits.iter().map(|s| log_probability(&at(s, x), label).exp()).sum::<f64>() / 25.0;
            let expected: Vec<f64> = (0..labels).map(p).collect();
            let found = |k: usize| f64::from(mean[k * v + x]);
            for label in 0..labels {
                assert!((found(label) - expected[label]).abs() < 2e-6);
            }
            let h: f64 = expected.iter().map(|p| -p * p.ln()).sum::<f64>() / (labels as f64).ln();
            assert!((f64::from(entropy[x]) - h).abs() < 1e-5, "{h} {}", entropy[x]);
        }

        let scores: Vec<f64> = logits
            .iter()
            .map(|s| (0..v).map(|x| log_probability(&at(s, x), usize::from(rater.labels()[x]))).sum())
            .collect();
        let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = scores.iter().map(|s| (s - largest).exp()).collect();
        let sum: f64 = weights.iter().sum();
        let expected = largest + (sum / 25.0).ln();
        let found = summary.log_likelihoods().unwrap()[0];
        assert!((found - expected).abs() < 1e-5 * expected.abs(), "{found} {expected}");
        let effective = sum * sum / weights.iter().map(|w| w * w).sum::<f64>();
        assert!((summary.effective_samples().unwrap()[0] - effective).abs() < 0.05 * effective);
    }
}

#[test]
fn the_likelihood_is_stable_far_from_the_mean() {
    // A thousand voxels, each improbable: every sample's probability underflows, their logarithm does not.
    let v = 1000;
    let mean = [vec![20.0f32; v], vec![-20.0f32; v]].concat();
    let d = LowRankNormal::new(2, v, 0, mean, vec![0.1f32; 2 * v], vec![0f32; 0]).unwrap();
    let raters = [LabelMap::new(vec![1; v], 2).unwrap()];
    let sampler = Sampler::new(&d, 0, &Steering::default()).unwrap();
    let mut summary = SampleSummary::new(&sampler, &raters).unwrap();
    summary.extend(&sampler, 0..10).unwrap();
    let found = summary.log_likelihoods().unwrap()[0];
    assert!((found + 40_000.0).abs() < 200.0, "{found}");
}

#[test]
fn confident_voxels_still_cost_something() {
    // The other class has probability e^-17.2 at each of a million voxels.
    let v = 1_000_000;
    let mean = [vec![17.2f32; v], vec![0.0f32; v]].concat();
    let d = LowRankNormal::new(2, v, 0, mean, vec![0f32; 2 * v], vec![0f32; 0]).unwrap();
    let raters = [LabelMap::new(vec![0; v], 2).unwrap()];
    let sampler = Sampler::new(&d, 0, &Steering::default()).unwrap();
    let mut summary = SampleSummary::new(&sampler, &raters).unwrap();
    summary.extend(&sampler, 0..1).unwrap();
    let expected = -(v as f64) * (-f64::from(17.2f32)).exp().ln_1p();
    let found = summary.log_likelihoods().unwrap()[0];
    assert!((found - expected).abs() < 1e-5 * expected.abs(), "{found} {expected}");
}

#[test]
fn a_single_class_can_be_calibrated() {
    let d = distribution(1, 64, 1);
    let raters = [LabelMap::new((0..64).map(|x| x % 2).collect(), 2).unwrap()];
    let sampler = Sampler::new(&d, 0, &Steering::default()).unwrap();
    let mut summary = SampleSummary::new(&sampler, &raters).unwrap();
    summary.extend(&sampler, 0..5).unwrap();
    assert!(ssn_core::metrics::brier(&summary.mean_probabilities().unwrap(), &raters).is_ok());
}

#[test]
fn blocks_change_nothing() {
    let d = distribution(2, 100, 2);
    let sampler = Sampler::new(&d, 0, &Steering::default()).unwrap();
    let (mut once, mut apart) =
        (SampleSummary::new(&sampler, &[]).unwrap(), SampleSummary::new(&sampler, &[]).unwrap());
    once.extend(&sampler, 0..200).unwrap();
    (0..200).for_each(|i| apart.extend(&sampler, i..i + 1).unwrap());
    assert_eq!(once.samples(), 200);
    assert_eq!(once.mean_probabilities().unwrap(), apart.mean_probabilities().unwrap());
}

#[test]
fn bad_input_is_named() {
    let d = distribution(2, 10, 1);
    let sampler = Sampler::new(&d, 0, &Steering::default()).unwrap();
    let short = [LabelMap::new(vec![0; 9], 2).unwrap()];
    let error = SampleSummary::new(&sampler, &short).unwrap_err().to_string();
    assert_eq!(error, "raters.voxels[0] is 9, but it must be the distribution's number of voxels");
    let many = [LabelMap::new(vec![2; 10], 3).unwrap()];
    let error = SampleSummary::new(&sampler, &many).unwrap_err().to_string();
    assert_eq!(error, "raters.classes[0] is 3, but it must be at most the distribution's number of classes");
    let mut summary = SampleSummary::new(&sampler, &[]).unwrap();
    assert_eq!(
        summary.mean_probabilities().unwrap_err().to_string(),
        "samples is empty, but at least one is needed"
    );
    assert!(summary.extend(&sampler, 5..5).is_err());
    let other = distribution(3, 10, 1);
    let error = summary.extend(&Sampler::new(&other, 0, &Steering::default()).unwrap(), 0..1).unwrap_err();
    assert_eq!(error.to_string(), "sampler.classes has length 3, but the shape asks for 2");
}
