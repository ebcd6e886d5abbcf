//! Voxels that packages of large cases leave out do not change, whatever the page is set to.

use ssn_core::random::philox4x32;
use ssn_core::{LowRankNormal, Sampler, Steering};
use ssn_eval::{DistributionFile, PredictionKind};
use ssn_view::{Packing, ViewCase, package};

use crate::common::{Parsed, about, noise};

/// Just large enough for voxels to be left out.
const SIZE: [usize; 3] = [2, 400, 400];
const RANK: usize = 3;

/// Logits of classes of every kind: from sure ones with little noise to unsure ones with much, so that voxels lie on
/// both sides of the rule and many near it.
fn file(classes: usize, names: &[&str]) -> DistributionFile {
    let v = SIZE.iter().product::<usize>();
    let (calm, gap) = (noise(7, v), noise(8, v));
    // Noise between e⁻⁶ and 1 of what is usual; every class has the noise of its voxel.
    let scale = |x: usize| (-3.0 - calm[x]).clamp(-6.0, 0.0).exp();
    let mean: Vec<f32> = noise(0, classes * v)
        .iter()
        .enumerate()
        .map(|(i, m)| m + 12.0 * gap[i % v].abs() * ((i / v) as f32 - 0.5))
        .collect();
    let diagonal: Vec<f32> = (0..classes * v).map(|i| (0.1 * scale(i % v)).powi(2)).collect();
    let factor: Vec<f32> =
        noise(2, RANK * classes * v).iter().enumerate().map(|(i, p)| p * scale(i % v) * 0.2).collect();
    let d = LowRankNormal::new(classes, v, RANK, mean, diagonal, factor).unwrap();
    DistributionFile::new(about(PredictionKind::Stochastic, SIZE, names), d, None).unwrap()
}

/// The settings at the limits of the page: every sign of every scale and weight, chosen by a number.
fn extreme(classes: usize, number: u32) -> Steering {
    let signs = philox4x32([number, 0, 0, 0], [1, 2])[0];
    let sign = |bit: usize| if signs >> bit & 1 == 0 { 3.0 } else { -3.0 };
    Steering {
        temperature: 3.0,
        class_scales: (0..classes).map(sign).collect(),
        mode_weights: (0..RANK).map(|q| sign(16 + q)).collect(),
        diagonal_noise: !number.is_multiple_of(8),
    }
}

#[test]
fn no_setting_moves_a_voxel_that_is_left_out() {
    for (classes, names) in [(3, &["a", "b", "c"][..]), (2, &["a", "b"]), (1, &["off", "on"])] {
        let case = ViewCase { file: file(classes, names), picture: None, raters: vec![], scores: None };
        let parsed = Parsed::new(&package(&case, &Packing::default()).unwrap());
        let (d, v) = (case.file.distribution(), SIZE.iter().product::<usize>());
        let mut frozen = vec![true; v];
        parsed.u32s("voxels").iter().for_each(|&x| frozen[x as usize] = false);
        let count = frozen.iter().filter(|out| **out).count();
        assert_eq!(parsed.header["frozen"]["voxels"], count);
        // The rule leaves out many and keeps many: neither half of the test is empty.
        assert!(count > v / 20 && count < v - v / 20, "{classes}: {count} of {v}");

        let prediction = case.file.prediction().unwrap();
        let mut closest = f32::INFINITY;
        for number in 0..24 {
            let sampler = Sampler::new(d, 11, &extreme(classes, number)).unwrap();
            let samples = u64::from(number) * 4..u64::from(number) * 4 + 4;
            for probabilities in sampler.probabilities(samples).unwrap() {
                for x in (0..v).filter(|&x| frozen[x]) {
                    let label = usize::from(prediction.labels()[x]);
                    let probability = match (classes, label) {
                        (1, 0) => 1.0 - probabilities[x],
                        (1, _) => probabilities[x],
                        _ => probabilities[label * v + x],
                    };
                    closest = closest.min(probability);
                }
            }
        }
        assert!(
            closest >= 0.999,
            "{classes} classes: a label that is left out has the probability {closest}"
        );
    }
}

#[test]
fn the_settings_at_the_limits_do_move_labels() {
    // Otherwise the test above would show nothing: it is the rule, not calm settings, that keeps labels where they are.
    let case = ViewCase { file: file(2, &["a", "b"]), picture: None, raters: vec![], scores: None };
    let parsed = Parsed::new(&package(&case, &Packing::default()).unwrap());
    let kept = parsed.u32s("voxels");
    let prediction = case.file.prediction().unwrap();
    let mut moved = vec![false; SIZE.iter().product()];
    for number in 0..16 {
        let sampler = Sampler::new(case.file.distribution(), 5, &extreme(2, number)).unwrap();
        for map in sampler.labels(0..2).unwrap() {
            let differ = map.labels().iter().zip(prediction.labels()).map(|(a, b)| a != b);
            moved.iter_mut().zip(differ).for_each(|(moved, now)| *moved |= now);
        }
    }
    let changed = moved.iter().filter(|moved| **moved).count();
    assert!(changed > 10_000, "{changed} voxels ever change");
    assert_eq!(kept.iter().filter(|&&x| moved[x as usize]).count(), changed, "and all of them are kept");
}

#[test]
fn small_cases_and_other_kinds_keep_everything() {
    let size = [1, 512, 512];
    let v = 512 * 512;
    let sure: Vec<f32> = (0..2 * v).map(|i| if i < v { 50.0 } else { -50.0 }).collect();
    let none = vec![0f32; 2 * v];
    let d = LowRankNormal::new(2, v, 0, sure.clone(), none.clone(), vec![0f32; 0]).unwrap();
    let names = ["a", "b"];
    let small = DistributionFile::new(about(PredictionKind::Stochastic, size, &names), d, None).unwrap();
    let large_size = [1, 512, 513];
    let v = 512 * 513;
    let sure: Vec<f32> = (0..2 * v).map(|i| if i < v { 50.0 } else { -50.0 }).collect();
    let d = || LowRankNormal::new(2, v, 0, sure.clone(), vec![0f32; 2 * v], vec![0f32; 0]).unwrap();
    let large = |kind| DistributionFile::new(about(kind, large_size, &names), d(), None).unwrap();
    let frozen = |file: DistributionFile| {
        let parsed = Parsed::new(
            &package(&ViewCase { file, picture: None, raters: vec![], scores: None }, &Packing::default())
                .unwrap(),
        );
        parsed.header["frozen"]["voxels"].as_u64().unwrap()
    };
    assert_eq!(frozen(small), 0);
    assert_eq!(frozen(large(PredictionKind::Deterministic)), 0);
    assert_eq!(frozen(large(PredictionKind::Stochastic)), v as u64, "no voxel is left, and that is no error");
}
