//! Every fast metric equals a slow one that follows the definition word by word, on a thousand random cases
//! each.

use proptest::prelude::*;
use ssn_core::LabelMap;
use ssn_core::labels::BitPlanes;
use ssn_core::metrics::{PairwiseDistances, SurfaceDistances, ged, squared_distance_transform};
use ssn_core::space::Grid;

const CASES: u32 = 1000;

fn close(found: f64, expected: f64) -> bool {
    found == expected || (found - expected).abs() <= 1e-12 * expected.abs().max(1.0)
}

/// d by its definition, on plain labels.
fn slow_distance(a: &[u8], b: &[u8], classes: usize) -> f64 {
    let iou = |class: u8| {
        let both = a.iter().zip(b).filter(|(x, y)| **x == class && **y == class).count();
        let any = a.iter().zip(b).filter(|(x, y)| **x == class || **y == class).count();
        if any == 0 { 1.0 } else { both as f64 / any as f64 }
    };
    1.0 - (1..classes).map(|class| iou(class as u8)).sum::<f64>() / (classes - 1) as f64
}

/// The mean of d over all pairs of two sets.
fn slow_mean(a: &[Vec<u8>], b: &[Vec<u8>], classes: usize) -> f64 {
    let pairs = (0..a.len()).flat_map(|i| (0..b.len()).map(move |j| (i, j)));
    let distances: Vec<f64> = pairs.map(|(i, j)| slow_distance(&a[i], &b[j], classes)).collect();
    distances.iter().sum::<f64>() / distances.len() as f64
}

/// The least cost over all permutations of the columns.
fn slow_assignment(cost: &[f64], size: usize, row: usize, free: &mut Vec<usize>) -> f64 {
    let mut best = if row == size { 0.0 } else { f64::INFINITY };
    for at in 0..free.len() {
        let column = free.swap_remove(at);
        best = best.min(cost[row * size + column] + slow_assignment(cost, size, row + 1, free));
        free.push(column);
        let last = free.len() - 1;
        free.swap(at, last);
    }
    best
}

fn planes(maps: &[Vec<u8>], classes: usize) -> Vec<BitPlanes> {
    maps.iter().map(|labels| BitPlanes::new(&LabelMap::new(labels.clone(), classes).unwrap())).collect()
}

/// Classes, `a` maps and `b` maps of the same size; some maps are empty.
fn two_sets(
    a: std::ops::RangeInclusive<usize>,
    b: std::ops::RangeInclusive<usize>,
) -> impl Strategy<Value = (usize, Vec<Vec<u8>>, Vec<Vec<u8>>)> {
    (2usize..6, 1usize..150).prop_flat_map(move |(classes, voxels)| {
        let labels = prop::collection::vec(0..classes as u8, voxels);
        let sparse = prop::collection::vec(prop_oneof![12 => Just(0u8), 1 => Just(1u8)], voxels);
        let map = prop_oneof![4 => labels, 2 => sparse, 1 => Just(vec![0; voxels])];
        (Just(classes), prop::collection::vec(map.clone(), a.clone()), prop::collection::vec(map, b.clone()))
    })
}

/// A small grid, flat in one case of three, with a spacing of its own along each axis.
fn grid() -> impl Strategy<Value = Grid> {
    let shape = (prop_oneof![1 => Just(1usize), 2 => 1usize..6], 1usize..8, 1usize..9);
    let spacing = prop_oneof![Just(1.0), 0.1f64..5.0];
    (shape, [spacing.clone(), spacing.clone(), spacing])
        .prop_map(|((d, h, w), spacing)| Grid::new([d, h, w], spacing).unwrap())
}

/// A grid with two masks, each empty, sparse, dense or full.
fn two_masks() -> impl Strategy<Value = (Grid, Vec<bool>, Vec<bool>)> {
    grid().prop_flat_map(|grid| {
        let density = || prop_oneof![Just(0.0), Just(0.05), Just(0.3), Just(0.9), Just(1.0)];
        let mask = move || {
            density().prop_flat_map(move |p| prop::collection::vec(prop::bool::weighted(p), grid.voxels()))
        };
        (Just(grid), mask(), mask())
    })
}

fn position(index: usize, [_, h, w]: [usize; 3]) -> [usize; 3] {
    [index / (h * w), index / w % h, index % w]
}

fn slow_squared(a: usize, b: usize, grid: &Grid) -> f64 {
    let (a, b, s) = (position(a, grid.shape()), position(b, grid.shape()), grid.spacing());
    (0..3).map(|axis| (a[axis].abs_diff(b[axis]) as f64 * s[axis]).powi(2)).sum()
}

fn slow_surface(mask: &[bool], grid: &Grid) -> Vec<usize> {
    let shape = grid.shape();
    let axes = if shape[0] == 1 { 1..3 } else { 0..3 };
    let stride = [shape[1] * shape[2], shape[2], 1];
    let exposed = |index: usize| {
        axes.clone().any(|axis| {
            let at = position(index, shape)[axis];
            at == 0 || at + 1 == shape[axis] || !mask[index - stride[axis]] || !mask[index + stride[axis]]
        })
    };
    (0..mask.len()).filter(|&index| mask[index] && exposed(index)).collect()
}

fn slow_directed(from: &[usize], to: &[usize], grid: &Grid) -> Vec<f64> {
    let nearest =
        |a: &usize| to.iter().map(|&b| slow_squared(*a, b, grid)).fold(f64::INFINITY, f64::min).sqrt();
    from.iter().map(nearest).collect()
}

fn slow_percentile(values: &[f64], q: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let position = q * (sorted.len() - 1) as f64;
    let (low, high) = (sorted[position.floor() as usize], sorted[position.ceil() as usize]);
    low * (1.0 - position.fract()) + high * position.fract()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn ged_equals_the_definition((classes, samples, raters) in two_sets(1..=7, 1..=5)) {
        let (a, b) = (planes(&samples, classes), planes(&raters, classes));
        let between = slow_mean(&samples, &raters, classes);
        let found = ged(&a, &b).unwrap();
        let within_samples = slow_mean(&samples, &samples, classes);
        let within_raters = slow_mean(&raters, &raters, classes);
        prop_assert!(close(found.sample_diversity, within_samples));
        prop_assert!(close(found.rater_diversity, within_raters));
        prop_assert!(close(found.squared, 2.0 * between - within_samples - within_raters));
    }

    #[test]
    fn hm_iou_equals_the_best_permutation(
        (classes, samples, raters) in prop_oneof![two_sets(1..=3, 1..=3), two_sets(4..=4, 2..=4)]
            .prop_filter("at most six after repetition", |(_, a, b)| {
                (1..=6).any(|size| size % a.len() == 0 && size % b.len() == 0)
            }),
    ) {
        let size = (1..=6).find(|size| size % samples.len() == 0 && size % raters.len() == 0).unwrap();
        let pairs = (0..size).flat_map(|i| (0..size).map(move |j| (i, j)));
        let cost: Vec<f64> = pairs
            .map(|(i, j)| slow_distance(&samples[i % samples.len()], &raters[j % raters.len()], classes))
            .collect();
        let expected = 1.0 - slow_assignment(&cost, size, 0, &mut (0..size).collect()) / size as f64;
        let (a, b) = (planes(&samples, classes), planes(&raters, classes));
        let found = PairwiseDistances::new(&a, &b).unwrap().hm_iou().unwrap();
        prop_assert!(close(found, expected), "{found} is not {expected}");
    }

    #[test]
    fn the_distance_transform_is_exact((grid, mask, _) in two_masks()) {
        let found = squared_distance_transform(&mask, &grid).unwrap();
        for (index, &value) in found.iter().enumerate() {
            let sites = (0..mask.len()).filter(|&site| mask[site]);
            let expected = sites.map(|site| slow_squared(index, site, &grid)).fold(f64::INFINITY, f64::min);
            prop_assert!(close(value, expected), "{value} is not {expected} at {index}");
        }
    }

    #[test]
    fn surface_scores_equal_the_definition((grid, first, second) in two_masks(), tolerance in 0.0f64..6.0) {
        let (a, b) = (slow_surface(&first, &grid), slow_surface(&second, &grid));
        let found = SurfaceDistances::new(&first, &second, &grid).unwrap();
        if a.is_empty() || b.is_empty() {
            prop_assert_eq!(found.hd95(), None);
            return Ok(());
        }
        let (ab, ba) = (slow_directed(&a, &b, &grid), slow_directed(&b, &a, &grid));
        let all = [ab.clone(), ba.clone()].concat();
        let larger = slow_percentile(&ab, 0.95).max(slow_percentile(&ba, 0.95));
        prop_assert!(close(found.hd95().unwrap(), larger));
        prop_assert!(close(found.assd().unwrap(), all.iter().sum::<f64>() / all.len() as f64));
        let within = all.iter().filter(|d| **d <= tolerance).count() as f64 / all.len() as f64;
        prop_assert!(close(found.nsd(tolerance).unwrap().unwrap(), within));
    }
}
