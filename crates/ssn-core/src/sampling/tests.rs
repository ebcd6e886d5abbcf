use super::*;

/// A distribution with varied values, from the generator itself.
fn example(classes: usize, voxels: usize, rank: usize) -> LowRankNormal {
    let numbers = |stream, n| {
        let mut out = vec![0.0; n];
        fill_normals(99, stream, 0, &mut out);
        out
    };
    let n = classes * voxels;
    let diagonal = numbers(1, n).into_iter().map(|x| x * x).collect::<Vec<_>>();
    LowRankNormal::new(classes, voxels, rank, numbers(0, n), diagonal, numbers(2, rank * n)).unwrap()
}

/// The specification, one number at a time.
fn logit_by_hand(d: &LowRankNormal, seed: u64, sample: u64, class: usize, voxel: usize) -> f32 {
    let (c, v) = (d.classes(), d.voxels());
    let number = |stream, length: usize| {
        let mut out = vec![0.0; length];
        fill_normals(seed, stream, sample, &mut out);
        out[length - 1]
    };
    let mut sum = 0.0f32;
    for q in 0..d.rank() {
        sum += number(RANK_STREAM, q + 1) * d.factor().get((q * c + class) * v + voxel);
    }
    sum += d.diagonal().get(class * v + voxel).sqrt() * number(class as u32, voxel + 1);
    d.mean().get(class * v + voxel) + sum
}

#[test]
fn logits_follow_the_specification() {
    for (c, v, r) in [(1, 21, 2), (2, 64, 0), (3, 65, 1), (4, 200, 10), (7, 2049, 3)] {
        let d = example(c, v, r);
        let sampler = Sampler::new(&d, 5, &Steering::default()).unwrap();
        let logits = sampler.logits(3..6).unwrap();
        for (i, sample) in logits.iter().enumerate() {
            for (class, voxel) in [(0, 0), (c - 1, v - 1), (c / 2, v / 2), (c - 1, 0)] {
                assert_eq!(sample[class * v + voxel], logit_by_hand(&d, 5, 3 + i as u64, class, voxel));
            }
        }
    }
}

#[test]
fn labels_are_the_argmax_and_probabilities_the_softmax() {
    let d = example(4, 3000, 5);
    let sampler = Sampler::new(&d, 1, &Steering::default()).unwrap();
    let logits = sampler.logits(0..3).unwrap();
    let labels = sampler.labels(0..3).unwrap();
    let probabilities = sampler.probabilities(0..3).unwrap();
    for i in 0..3 {
        for x in 0..3000 {
            let of = |values: &[f32]| (0..4).map(|k| f64::from(values[k * 3000 + x])).collect::<Vec<_>>();
            let eta = of(&logits[i]);
            let best = (0..4).rev().max_by(|&a, &b| eta[a].total_cmp(&eta[b])).unwrap();
            assert_eq!(usize::from(labels[i].labels()[x]), best);
            let sum: f64 = eta.iter().map(|e| e.exp()).sum();
            for (p, e) in of(&probabilities[i]).iter().zip(&eta) {
                assert!((p - e.exp() / sum).abs() < 1e-6);
            }
        }
    }
}

#[test]
fn grouping_samples_changes_nothing() {
    let d = example(2, 500, 3);
    let sampler = Sampler::new(&d, 1, &Steering::default()).unwrap();
    let together = sampler.labels(0..7).unwrap();
    let apart: Vec<_> = (0..7).flat_map(|i| sampler.labels(i..i + 1).unwrap()).collect();
    assert_eq!(together, apart);
}

#[test]
fn a_single_class_is_labeled_by_the_sign() {
    let d = example(1, 100, 1);
    let sampler = Sampler::new(&d, 1, &Steering::default()).unwrap();
    let logits = &sampler.logits(0..1).unwrap()[0];
    let labels = &sampler.labels(0..1).unwrap()[0];
    let probabilities = &sampler.probabilities(0..1).unwrap()[0];
    for x in 0..100 {
        assert_eq!(labels.labels()[x] == 1, logits[x] > 0.0);
        assert!((probabilities[x] - 1.0 / (1.0 + (-logits[x]).exp())).abs() < 1e-6);
    }
}

#[test]
fn steering_is_checked() {
    let d = example(2, 10, 3);
    let with = |steering: Steering| Sampler::new(&d, 0, &steering).unwrap_err().to_string();
    assert_eq!(
        with(Steering { class_scales: vec![1.0; 3], ..Steering::default() }),
        "class_scales has length 3, but the shape asks for 2"
    );
    assert_eq!(
        with(Steering { mode_weights: vec![1.0, f32::NAN, 0.0], ..Steering::default() }),
        "mode_weights[1] is NaN, but every value must be finite"
    );
    assert!(with(Steering { temperature: f32::INFINITY, ..Steering::default() }).starts_with("temperature"));
    assert!(Sampler::new(&d, 0, &Steering::default()).unwrap().labels(4..4).is_err());
}
