//! Laws that the metrics obey whatever the input, and the promise that threads change no bit.

use proptest::prelude::*;
use ssn_core::LabelMap;
use ssn_core::labels::BitPlanes;
use ssn_core::metrics::{
    ClassGroup, LabelFrequencies, Overlap, PairwiseDice, PairwiseDistances, SurfaceDistances, better_than,
    foreground_distance, ged, quantile, squared_distance_transform, variance_ncc,
};
use ssn_core::space::Grid;

const CASES: u32 = 1000;
const TOLERANCE: f64 = 1e-12;

fn planes(maps: &[Vec<u8>], classes: usize) -> Vec<BitPlanes> {
    maps.iter().map(|labels| BitPlanes::new(&LabelMap::new(labels.clone(), classes).unwrap())).collect()
}

fn label_maps(maps: &[Vec<u8>], classes: usize) -> Vec<LabelMap> {
    maps.iter().map(|labels| LabelMap::new(labels.clone(), classes).unwrap()).collect()
}

/// Classes and two sets of maps of the same size, some of them empty.
fn two_sets() -> impl Strategy<Value = (usize, Vec<Vec<u8>>, Vec<Vec<u8>>)> {
    (2usize..6, 1usize..200).prop_flat_map(|(classes, voxels)| {
        let labels = prop::collection::vec(0..classes as u8, voxels);
        let map = prop_oneof![5 => labels, 1 => Just(vec![0; voxels])];
        (Just(classes), prop::collection::vec(map.clone(), 1..6), prop::collection::vec(map, 1..6))
    })
}

fn hm_iou(samples: &[BitPlanes], raters: &[BitPlanes]) -> ssn_core::Result<f64> {
    PairwiseDistances::new(samples, raters)?.hm_iou()
}

/// Everything that compares maps voxel by voxel, as one list.
fn overlap_scores(classes: usize, samples: &[Vec<u8>], raters: &[Vec<u8>]) -> Vec<Option<f64>> {
    let (a, b) = (planes(samples, classes), planes(raters, classes));
    let groups = ClassGroup::each(classes);
    let whole = ClassGroup::whole(classes).unwrap();
    let all = ged(&a, &b).unwrap();
    let dice = |map| Overlap::new(map, &b[0], &whole).unwrap().dice();
    let dice: Vec<_> = a.iter().map(dice).collect();
    let mut scores = vec![
        Some(all.squared),
        Some(all.sample_diversity),
        Some(hm_iou(&a, &b).unwrap()),
        Some(PairwiseDice::new(&a, &b, &groups).unwrap().max_of_raters()),
        better_than(dice[0], &dice),
        quantile(&dice.iter().copied().flatten().collect::<Vec<_>>(), 0.95).unwrap(),
    ];
    scores.extend(groups.iter().map(|group| Overlap::new(&a[0], &b[0], group).unwrap().dice()));
    let volumes = a.iter().flat_map(|map| groups.iter().map(|group| Some(group.volume(map) as f64)));
    scores.extend(volumes);
    scores
}

/// Moves voxel `order[i]` of every map to place i.
fn permuted(maps: &[Vec<u8>], order: &[usize]) -> Vec<Vec<u8>> {
    maps.iter().map(|map| order.iter().map(|&voxel| map[voxel]).collect()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn a_set_is_at_no_distance_from_itself((classes, samples, _) in two_sets()) {
        let maps = planes(&samples, classes);
        let mut reversed = maps.clone();
        reversed.reverse();
        prop_assert!(ged(&maps, &reversed).unwrap().squared.abs() < TOLERANCE);
        prop_assert!((hm_iou(&maps, &reversed).unwrap() - 1.0).abs() < TOLERANCE);
        prop_assert_eq!(foreground_distance(&maps[0], &maps[0]).unwrap(), 0.0);
    }

    #[test]
    fn scores_are_symmetric_and_bounded((classes, samples, raters) in two_sets()) {
        let (a, b) = (planes(&samples, classes), planes(&raters, classes));
        let (there, back) =
            (ged(&a, &b).unwrap(), ged(&b, &a).unwrap());
        prop_assert!((there.squared - back.squared).abs() < TOLERANCE);
        prop_assert_eq!(there.sample_diversity, back.rater_diversity);
        prop_assert!(there.squared > -TOLERANCE && there.squared < 2.0 + TOLERANCE);
        let (there, back) = (hm_iou(&a, &b).unwrap(), hm_iou(&b, &a).unwrap());
        prop_assert!((there - back).abs() < TOLERANCE && (-TOLERANCE..=1.0 + TOLERANCE).contains(&there));
        let (there, back) = (foreground_distance(&a[0], &b[0]), foreground_distance(&b[0], &a[0]));
        prop_assert_eq!(there.unwrap(), back.unwrap());
    }

    #[test]
    fn the_order_of_voxels_does_not_matter(
        ((classes, samples, raters), order) in two_sets().prop_flat_map(|sets| {
            let order = Just((0..sets.1[0].len()).collect::<Vec<_>>()).prop_shuffle();
            (Just(sets), order)
        }),
    ) {
        let (moved_samples, moved_raters) = (permuted(&samples, &order), permuted(&raters, &order));
        prop_assert_eq!(
            overlap_scores(classes, &samples, &raters),
            overlap_scores(classes, &moved_samples, &moved_raters)
        );
        let ncc = |a: &[Vec<u8>], b: &[Vec<u8>]| {
            let of = |maps| LabelFrequencies::of(&label_maps(maps, classes)).unwrap();
            variance_ncc(&of(a), &of(b)).unwrap()
        };
        let (before, after) = (ncc(&samples, &raters), ncc(&moved_samples, &moved_raters));
        prop_assert_eq!(before.is_some(), after.is_some());
        prop_assert!(before.zip(after).is_none_or(|(before, after)| (before - after).abs() < 1e-9));
    }

    #[test]
    fn surface_scores_are_symmetric_and_follow_the_unit(
        masks in prop::collection::vec((prop::bool::ANY, prop::bool::weighted(0.2)), 4 * 5 * 6),
        scale in 0.5f64..4.0,
    ) {
        let (first, second): (Vec<bool>, Vec<bool>) = masks.into_iter().unzip();
        let measure = |a: &[bool], b: &[bool], unit: f64| {
            let grid = Grid::new([4, 5, 6], [3.0 * unit, unit, 0.7 * unit]).unwrap();
            SurfaceDistances::new(a, b, &grid).unwrap().assd()
        };
        let (one, back) = (measure(&first, &second, 1.0), measure(&second, &first, 1.0));
        let scaled = measure(&first, &second, scale);
        prop_assert_eq!(one.is_some(), first.contains(&true) && second.contains(&true));
        prop_assert!(one.zip(back).is_none_or(|(one, back)| (one - back).abs() < TOLERANCE));
        prop_assert!(one.zip(scaled).is_none_or(|(one, scaled)| (one * scale - scaled).abs() < 1e-9));
    }
}

/// All that runs in parallel, on maps that span several blocks.
fn everything() -> (PairwiseDistances, Vec<f64>, SurfaceDistances, f64) {
    let shape = [20, 40, 50];
    let map = |k: usize| -> Vec<u8> {
        (0..40_000usize).map(|i| (i.wrapping_mul(2_654_435_761 + 97 * k) >> 13) as u8 % 4).collect()
    };
    let maps = planes(&(0..9).map(map).collect::<Vec<_>>(), 4);
    let distances = PairwiseDistances::new(&maps[..6], &maps[6..]).unwrap();
    let grid = Grid::new(shape, [2.5, 0.9, 1.1]).unwrap();
    let mask =
        |k: usize| map(k).iter().enumerate().map(|(i, &l)| l == 1 && i % 17 == k).collect::<Vec<bool>>();
    let squared = squared_distance_transform(&mask(1), &grid).unwrap();
    let surface = SurfaceDistances::new(&mask(1), &mask(2), &grid).unwrap();
    let dice = PairwiseDice::new(&maps[..6], &maps[6..], &ClassGroup::each(4)).unwrap().max_of_raters();
    (distances, squared, surface, dice)
}

#[test]
fn threads_change_no_bit() {
    let run =
        |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(everything);
    let alone = run(1);
    assert!(alone.1.iter().all(|squared| squared.is_finite()));
    for threads in [2, 5] {
        assert!(run(threads) == alone, "{threads} threads give another result than one");
    }
}
