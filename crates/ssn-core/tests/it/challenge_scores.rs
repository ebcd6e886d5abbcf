//! The scores of the challenges equal their definitions, written out voxel by voxel in double precision.

use ssn_core::LabelMap;
use ssn_core::metrics::{ClassGroup, RaterVotes, crps_of_raters, crps_of_samples, staple};
use ssn_core::random::philox4x32;

const CASES: u32 = 1000;

/// Numbers from a seed.
struct Chance {
    seed: u32,
    place: u32,
}

impl Chance {
    fn next(&mut self) -> u32 {
        self.place += 1;
        philox4x32([self.place, 0, 0, 0], [self.seed, 17])[0]
    }

    fn below(&mut self, end: u32) -> u32 {
        self.next() % end
    }
}

/// Raters of one class of three that agree more or less, and probabilities with many ties at the thresholds.
struct RandomCase {
    raters: Vec<Vec<u8>>,
    p: Vec<f32>,
    mask: Vec<bool>,
}

fn case(seed: u32) -> RandomCase {
    let mut chance = Chance { seed, place: 0 };
    let (n, v) = (1 + chance.below(6) as usize, 1 + chance.below(40) as usize);
    let agreement = chance.below(5);
    let truth: Vec<u8> = (0..v).map(|_| chance.below(3) as u8).collect();
    let mut label =
        |voxel: usize| if chance.below(5) < agreement { truth[voxel] } else { chance.below(3) as u8 };
    let raters: Vec<Vec<u8>> = (0..n).map(|_| (0..v).map(&mut label).collect()).collect();
    let p = (0..v).map(|_| {
        if chance.below(2) == 0 {
            chance.below(11) as f32 / 10.0
        } else {
            chance.next() as f32 / u32::MAX as f32
        }
    });
    let p: Vec<f32> = p.collect();
    let mask = (0..v).map(|_| chance.below(2) == 1).collect();
    RandomCase { raters, p, mask }
}

fn dice(a: &[bool], b: &[bool]) -> Option<f64> {
    let (mut both, mut sum) = (0.0, 0.0);
    for (a, b) in a.iter().zip(b) {
        both += f64::from(u8::from(*a && *b));
        sum += f64::from(u8::from(*a)) + f64::from(u8::from(*b));
    }
    (sum > 0.0).then(|| 2.0 * both / sum)
}

fn same(found: Option<f64>, expected: Option<f64>, what: &str) {
    match (found, expected) {
        (None, None) => {}
        (Some(found), Some(expected)) if (found - expected).abs() < 1e-9 => {}
        _ => panic!("{what}: {found:?} and {expected:?}"),
    }
}

#[test]
fn consensus_confidence_and_soft_dice_equal_their_definitions() {
    let mut defined = 0;
    for seed in 0..CASES {
        let RandomCase { raters, p, mask } = case(seed);
        let maps: Vec<LabelMap> =
            raters.iter().map(|rater| LabelMap::new(rater.clone(), 3).unwrap()).collect();
        let votes = RaterVotes::new(&maps, &ClassGroup::new(&[1]).unwrap()).unwrap();
        let v = p.len();
        let count = |voxel: usize| raters.iter().filter(|rater| rater[voxel] == 1).count();
        let all: Vec<bool> = (0..v).map(|voxel| count(voxel) == raters.len()).collect();
        let none: Vec<bool> = (0..v).map(|voxel| count(voxel) == 0).collect();
        let without: Vec<bool> = (0..v).map(|voxel| mask[voxel] && (all[voxel] || none[voxel])).collect();
        let expected = all.contains(&true).then(|| dice(&without, &all)).flatten();
        same(votes.consensus_dice(&mask).unwrap(), expected, &format!("consensus Dice {seed}"));

        let mean = |chosen: &[bool]| {
            let values: Vec<f64> =
                (0..v).filter(|&voxel| chosen[voxel]).map(|voxel| f64::from(p[voxel])).collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        let expected = mean(&all).zip(mean(&none)).map(|(inside, outside)| (inside + 1.0 - outside) / 2.0);
        defined += usize::from(expected.is_some());
        same(votes.confidence(&p).unwrap(), expected, &format!("confidence {seed}"));

        for thresholds in [
            (1..=9).map(|i| f64::from(i) / 10.0).collect::<Vec<_>>(),
            (0..6).map(|i| 0.1 + 0.7 * f64::from(i) / 5.0).collect(),
            vec![0.1, 0.3, 0.5, 0.7, 0.9],
        ] {
            // In exact arithmetic: tenths are tenths, and nothing else of ours lies within a millionth of a threshold.
            let exact = |p: f32| {
                if (p * 10.0).fract().abs() < 1e-5 {
                    f64::from((p * 10.0).round()) / 10.0
                } else {
                    f64::from(p)
                }
            };
            let above = |value: f64, threshold: f64| value - threshold > 1e-7;
            let of = |threshold: &f64| {
                let predicted: Vec<bool> = p.iter().map(|&p| above(exact(p), *threshold)).collect();
                let share = |voxel| count(voxel) as f64 / raters.len() as f64;
                let marked: Vec<bool> = (0..v).map(|voxel| above(share(voxel), *threshold)).collect();
                dice(&predicted, &marked).unwrap_or(1.0)
            };
            let expected = thresholds.iter().map(of).sum::<f64>() / thresholds.len() as f64;
            same(
                Some(votes.soft_dice(&p, &thresholds).unwrap()),
                Some(expected),
                &format!("soft Dice {seed}"),
            );
        }
    }
    assert!(defined > 300, "{defined} of {CASES} have a confidence");
}

#[test]
fn crps_equal_their_integrals() {
    for seed in 0..CASES {
        let mut chance = Chance { seed, place: 99 };
        let mut volumes =
            |count: u32| -> Vec<f64> { (0..count).map(|_| f64::from(chance.below(1000)) / 37.0).collect() };
        let (raters, samples, predicted) = (volumes(2 + seed % 5), volumes(1 + seed % 7), volumes(1)[0]);
        let n = raters.len() as f64;
        let mean = raters.iter().sum::<f64>() / n;
        let deviation = (raters.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt();
        let steps = 20_000;
        let integral = |low: f64, high: f64, below: &dyn Fn(f64) -> f64, at: f64| {
            let step = (high - low) / f64::from(steps);
            let place = |i: i32| low + (f64::from(i) + 0.5) * step;
            (0..steps)
                .map(|i| (below(place(i)) - f64::from(u8::from(place(i) >= at))).powi(2) * step)
                .sum::<f64>()
        };
        if deviation > 0.0 {
            let below = |x: f64| 0.5 * libm::erfc((mean - x) / deviation / 2f64.sqrt());
            let ends = (predicted.min(mean) - 9.0 * deviation, predicted.max(mean) + 9.0 * deviation);
            let expected = integral(ends.0, ends.1, &below, predicted);
            let found = crps_of_raters(&raters, predicted).unwrap();
            assert!((found - expected).abs() < 1e-4 * (ends.1 - ends.0), "{seed}: {found} and {expected}");
        }
        // The distribution function of the samples is a staircase, so that its integral is a sum.
        let of_rater = |y: &f64| {
            let mut edges: Vec<f64> = samples.iter().copied().chain([*y]).collect();
            edges.sort_by(f64::total_cmp);
            let piece = |pair: &[f64]| {
                let below = samples.iter().filter(|x| **x <= pair[0]).count() as f64 / samples.len() as f64;
                (below - f64::from(u8::from(pair[0] >= *y))).powi(2) * (pair[1] - pair[0])
            };
            edges.windows(2).map(piece).sum::<f64>()
        };
        let expected = raters.iter().map(of_rater).sum::<f64>() / n;
        same(
            Some(crps_of_samples(&samples, &raters).unwrap()),
            Some(expected),
            &format!("CRPS of samples {seed}"),
        );
    }
}

#[test]
fn staple_equals_expectation_maximization_voxel_by_voxel() {
    let mut differing = 0;
    for seed in 0..CASES {
        let RandomCase { raters, .. } = case(seed);
        let marks: Vec<Vec<bool>> =
            raters.iter().map(|rater| rater.iter().map(|label| *label > 0).collect()).collect();
        let (n, v) = (marks.len(), marks[0].len());
        let total = marks.iter().flatten().filter(|mark| **mark).count() as f64;
        let prior = total / (n * v) as f64;
        let maps: Vec<LabelMap> =
            raters.iter().map(|rater| LabelMap::new(rater.clone(), 3).unwrap()).collect();
        let found = staple(&maps, &ClassGroup::new(&[1, 2]).unwrap()).unwrap();
        if prior == 0.0 || prior == 1.0 {
            assert!(found.iter().all(|p| *p == prior));
            continue;
        }
        let share = |voxel: usize| marks.iter().filter(|rater| rater[voxel]).count() as f64 / n as f64;
        let (mut p, mut q) = (vec![0.0; n], vec![0.0; n]);
        let mut w: Vec<f64> = (0..v).map(share).collect();
        for _ in 0..1000 {
            let old = [p.clone(), q.clone()].concat();
            for rater in 0..n {
                let (mut hit, mut weight, mut miss, mut rest) = (0.0, 0.0, 0.0, 0.0);
                for voxel in 0..v {
                    hit += if marks[rater][voxel] { w[voxel] } else { 0.0 };
                    weight += w[voxel];
                    miss += if marks[rater][voxel] { 0.0 } else { 1.0 - w[voxel] };
                    rest += 1.0 - w[voxel];
                }
                p[rater] = if weight > 0.0 { hit / weight } else { 0.99999 };
                q[rater] = if rest > 0.0 { miss / rest } else { 0.99999 };
            }
            let new = [p.clone(), q.clone()].concat();
            if new.iter().zip(&old).all(|(new, old)| (new - old).abs() < 1e-9) {
                break;
            }
            for (voxel, w) in w.iter_mut().enumerate() {
                let (mut there, mut absent) = (prior, 1.0 - prior);
                for rater in 0..n {
                    there *= if marks[rater][voxel] { p[rater] } else { 1.0 - p[rater] };
                    absent *= if marks[rater][voxel] { 1.0 - q[rater] } else { q[rater] };
                }
                *w = if there + absent > 0.0 { there / (there + absent) } else { share(voxel) };
            }
        }
        let same = found.iter().zip(&w).all(|(found, expected)| (found - expected).abs() < 1e-6);
        differing += usize::from(!same);
    }
    // Where raters are symmetric to each other, rounding decides to which side the iteration goes.
    assert!(differing <= 2, "{differing} of {CASES} differ");
}
