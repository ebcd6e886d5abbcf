//! Inputs and values from the tests and documentation of other projects: MONAI (`tests/metrics`), medpy (`tests/metric_`
//! and the documentation of `metric/binary.py`), the probabilistic U-Net (`tests/evaluation/eval_tests.py`) and PHiSeg.
//!
//! PHiSeg has no tests: the values here are those that its functions give. Left out are scores that have no counterpart
//! (directed and chessboard distances, sub-voxel surfaces, weighted generalized Dice, relative volume differences).

use ssn_core::labels::{BitPlanes, LabelMap};
use ssn_core::metrics::{
    ClassGroup, Distance, LabelFrequencies, Overlap, PairwiseDistances, Summary, SurfaceDistances,
    foreground_distance,
};
use ssn_core::space::Grid;

const TOLERANCE: f64 = 1e-6;

fn assert_close(found: f64, expected: f64, what: &str) {
    assert!((found - expected).abs() <= TOLERANCE, "{what}: {found}, not {expected}");
}

fn planes(labels: &[u8], classes: usize) -> BitPlanes {
    BitPlanes::new(&LabelMap::new(labels.to_vec(), classes).unwrap())
}

/// Dice of two binary masks.
fn dice(first: &[u8], second: &[u8]) -> Option<f64> {
    let group = ClassGroup::new(&[1]).unwrap();
    Overlap::new(&planes(first, 2), &planes(second, 2), &group).unwrap().dice()
}

/// IoU of two binary masks, 1 where both are empty.
fn iou(first: &[u8], second: &[u8]) -> f64 {
    1.0 - foreground_distance(&planes(first, 2), &planes(second, 2)).unwrap()
}

/// A mask, a rater's mask, and the Dice and IoU of them that MONAI publishes; with both masks empty it has none.
type MaskPair = ([u8; 4], [u8; 4], Option<(f64, f64)>);

#[test]
fn monai_dice_and_iou_of_each_class() {
    let cases: [MaskPair; 11] = [
        // Case 1.
        ([1, 0, 0, 1], [1, 0, 1, 1], Some((0.8, 2.0 / 3.0))),
        // Case 2, classes 1 and 2 of two images.
        ([0, 0, 1, 1], [1, 0, 1, 0], Some((0.5, 1.0 / 3.0))),
        ([1, 0, 0, 0], [0, 1, 0, 0], Some((0.0, 0.0))),
        ([1, 0, 0, 0], [1, 1, 0, 0], Some((2.0 / 3.0, 0.5))),
        ([0, 1, 1, 0], [0, 0, 1, 0], Some((2.0 / 3.0, 0.5))),
        // Case 3, where a class that the rater has not has no value; ours has none only where neither has it.
        ([0, 0, 0, 0], [0, 0, 0, 0], None),
        ([0, 0, 0, 0], [1, 1, 1, 1], Some((0.0, 0.0))),
        // Cases 9 and 12.
        ([1, 1, 1, 1], [1, 1, 1, 1], Some((1.0, 1.0))),
        ([1, 1, 1, 1], [0, 0, 0, 0], Some((0.0, 0.0))),
        // Classes of cases 4 and 5; the generalized Dice of single classes (its case 10) is the same.
        ([1, 1, 1, 0], [1, 1, 1, 1], Some((0.857143, 0.75))),
        ([0, 1, 1, 1], [1, 1, 0, 0], Some((0.4, 0.25))),
    ];
    for (mask, rater, expected) in cases {
        let what = format!("{mask:?} and {rater:?}");
        match expected {
            None => assert_eq!(dice(&mask, &rater), None, "{what}"),
            Some((expected_dice, expected_iou)) => {
                assert_close(dice(&mask, &rater).unwrap(), expected_dice, &what);
                assert_close(iou(&mask, &rater), expected_iou, &what);
            }
        }
    }
    // Case 11: with `ignore_empty=False` two empty masks are at 1.
    assert_close(iou(&[0; 4], &[0; 4]), 1.0, "case 11");
}

/// The mean over images of the Dice of each class where the rater has the class, as in cases 4 and 5.
#[test]
fn monai_mean_dice_skips_classes_that_the_rater_has_not() {
    let masks = [[[1, 1, 1, 0], [0, 1, 0, 0], [0, 1, 1, 1]], [[1, 0, 1, 1], [0, 1, 1, 1], [0, 1, 1, 0]]];
    let raters: [[[u8; 4]; 3]; 2] =
        [[[1, 1, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0]], [[0, 0, 0, 1], [1, 1, 0, 0], [0, 0, 1, 0]]];
    let score = |image: usize, class: usize| {
        let (mask, rater) = (&masks[image][class], &raters[image][class]);
        dice(mask, rater).filter(|_| rater.contains(&1))
    };
    for (class, expected) in [0.678571, 0.4, 0.666667].into_iter().enumerate() {
        let of_class = Summary::of(&[score(0, class), score(1, class)]).unwrap();
        assert_close(of_class.mean.unwrap(), expected, "case 4");
    }
    let of_image = |image: usize| {
        let classes: Vec<Option<f64>> = (0..3).map(|class| score(image, class)).collect();
        Summary::of(&classes).unwrap().mean
    };
    assert_close(Summary::of(&[of_image(0), of_image(1)]).unwrap().mean.unwrap(), 0.689683, "case 5");
}

/// A ball in an image of 99 × 99 × 99 voxels, as the functions of MONAI's tests draw it: the center is in millimeters.
fn ball(radius: f64, center: [f64; 3], spacing: [f64; 3]) -> Vec<bool> {
    let squared = |axis: usize, at: usize| (at as f64 * spacing[axis] - center[axis]).powi(2);
    let mut mask = Vec::with_capacity(99 * 99 * 99);
    for z in 0..99 {
        for y in 0..99 {
            mask.extend((0..99).map(|x| squared(1, y) + squared(0, z) + squared(2, x) <= radius * radius));
        }
    }
    mask
}

const SPACING: [f64; 3] = [0.85, 1.2, 0.9];

fn between(first: &[bool], second: &[bool], spacing: [f64; 3]) -> SurfaceDistances {
    SurfaceDistances::new(first, second, &Grid::new([99; 3], spacing).unwrap()).unwrap()
}

/// The Hausdorff distance is the smallest tolerance with a surface Dice of 1. Values of single precision have 7 digits.
fn assert_hausdorff(found: &SurfaceDistances, expected: f64) {
    let nsd = |tolerance: f64| found.nsd(tolerance).unwrap().unwrap();
    assert_close(nsd(expected * (1.0 + 1e-7)), 1.0, "within the Hausdorff distance");
    assert!(nsd((expected - TOLERANCE).max(0.0)) < 1.0 || expected == 0.0, "{expected} is too large");
}

#[test]
fn monai_hausdorff_distance() {
    let one = [1.0; 3];
    let same = ball(20.0, [49.0; 3], one);
    assert_hausdorff(&between(&same, &same, one), 0.0);
    let moved = between(&ball(20.0, [20.0; 3], one), &ball(20.0, [19.0; 3], one), one);
    assert_hausdorff(&moved, 1.7320508075688772);
    let [a, b] = [19.0, 20.0].map(|z| ball(33.0, [z, 33.0, 22.0], one));
    assert_hausdorff(&between(&a, &b, one), 1.0);
    let [small, large] = [20.0, 40.0].map(|radius| ball(radius, [20.0, 33.0, 22.0], one));
    let grown = between(&small, &large, one);
    assert_hausdorff(&grown, 20.223748416156685);
    assert_close(grown.hd95().unwrap(), 20.09975124224178, "percentile 95");
    let oblong = between(&ball(20.0, [20.0; 3], SPACING), &ball(20.0, [19.0; 3], SPACING), SPACING);
    assert_hausdorff(&oblong, 2.2671568);
    let [small, large] = [15.0, 30.0].map(|radius| ball(radius, [20.0, 33.0, 22.0], SPACING));
    assert_hausdorff(&between(&small, &large, SPACING), 15.62594);
}

#[test]
fn monai_surface_distance() {
    let one = [1.0; 3];
    let assd = |first: &[bool], second: &[bool], spacing| between(first, second, spacing).assd().unwrap();
    let same = ball(20.0, [49.0; 3], one);
    assert_close(assd(&same, &same, one), 0.0, "the same ball");
    let [a, b] = [19.0, 20.0].map(|z| ball(33.0, [z, 33.0, 22.0], one));
    assert_close(assd(&a, &b, one), 0.350217, "a ball moved by one voxel");
    let [small, large] = [20.0, 40.0].map(|radius| ball(radius, [20.0, 33.0, 22.0], one));
    assert_close(assd(&small, &large, one), 15.117741, "a ball twice as large");
    // This value is published with four digits.
    let [a, b] = [42.0, 43.0].map(|z| ball(33.0, [z, 45.0, 52.0], SPACING));
    assert!((assd(&a, &b, SPACING) - 0.4951).abs() < 5e-5);
}

/// MONAI's distances are infinite where one mask is empty and not a number where both are; ours have no value.
#[test]
fn monai_distances_of_empty_masks() {
    let (ball, empty) = (ball(40.0, [20.0, 33.0, 22.0], [1.0; 3]), vec![false; 99 * 99 * 99]);
    for (first, second, one_is_empty) in
        [(&empty, &ball, true), (&ball, &empty, true), (&empty, &empty, false)]
    {
        let found = between(first, second, [1.0; 3]);
        assert_eq!((found.hd95(), found.assd(), found.one_is_empty()), (None, None, one_is_empty));
    }
}

/// Surface Dice of a class and of what is outside it.
fn surface_dice(first: &[bool], second: &[bool], grid: Grid, tolerances: [f64; 2]) -> [f64; 2] {
    let outside = |mask: &[bool]| mask.iter().map(|inside| !inside).collect::<Vec<_>>();
    let masks = [(outside(first), outside(second)), (first.to_vec(), second.to_vec())];
    std::array::from_fn(|class| {
        let (first, second) = &masks[class];
        SurfaceDistances::new(first, second, &grid).unwrap().nsd(tolerances[class]).unwrap().unwrap()
    })
}

#[test]
fn monai_surface_dice_of_a_moved_edge() {
    let expected: [f64; 2] = [
        1.0 - (478.0 + 480.0 + 18.0) / (480.0 * 4.0 + 48.0 * 2.0 + 58.0 * 2.0),
        1.0 - (478.0 + 480.0 + 18.0) / (480.0 * 4.0 + 588.0 * 2.0 + 578.0 * 2.0),
    ];
    let from = |column: usize| (0..480 * 640).map(|at| at % 640 >= column).collect::<Vec<bool>>();
    for (spacing, whole) in [([1.0, 1.0, 1.0], 10.0), ([1.0, 0.85, 1.2], 12.0)] {
        let grid = Grid::new([1, 480, 640], spacing).unwrap();
        let at = |tolerance: f64| surface_dice(&from(50), &from(60), grid, [tolerance; 2]);
        for class in 0..2 {
            assert_close(at(0.0)[class], expected[class], "tolerance 0");
            assert!(at(0.0)[class] < at(1.0)[class] && at(1.0)[class] < at(9.0)[class]);
            assert!(at(9.0)[class] < at(whole)[class], "spacing {spacing:?}");
            assert_close(at(whole)[class], at(whole + 1.0)[class], "all is within the shift");
        }
    }
}

#[test]
fn monai_surface_dice_in_3d() {
    let wrong = 200.0 * 110.0 + 198.0 * 108.0 + 9.0 * 200.0 * 2.0 + 9.0 * 108.0 * 2.0;
    let all = |depth: f64| 200.0 * 110.0 * 4.0 + depth * 200.0 * 2.0 + depth * 108.0 * 2.0;
    let from = |column: usize| (0..200 * 110 * 80).map(|at| at % 80 >= column).collect::<Vec<bool>>();
    let grid = Grid::new([200, 110, 80], [1.0; 3]).unwrap();
    let [background, class] = surface_dice(&from(20), &from(30), grid, [0.0; 2]);
    assert_close(background, 1.0 - wrong / all(28.0 + 18.0), "background");
    assert_close(class, 1.0 - wrong / all(58.0 + 48.0), "class 1");
}

#[test]
fn monai_surface_dice_at_tolerances() {
    let line = |rows: std::ops::Range<usize>, column: usize| -> Vec<bool> {
        (0..100).map(|at| rows.contains(&(at / 10)) && at % 10 == column).collect()
    };
    let grid = Grid::new([1, 10, 10], [1.0; 3]).unwrap();
    for (tolerances, expected) in [
        ([0.0, 0.0], [1.0 - 12.0 / 84.0, 0.0]),
        ([2.8, 5.5], [1.0 - 3.0 / 84.0, 1.0 - 4.0 / 6.0]),
        ([3.0, 6.0], [1.0 - 1.0 / 84.0, 1.0 - 2.0 / 6.0]),
    ] {
        let found = surface_dice(&line(1..4, 1), &line(5..8, 6), grid, tolerances);
        assert_close(found[0], expected[0], "background");
        assert_close(found[1], expected[1], "class 1");
    }
}

/// A class that only the prediction or only the rater has counts 0, one that neither has nothing.
#[test]
fn monai_surface_dice_of_absent_classes() {
    let block = |label: u8| -> Vec<u8> {
        let inside = |at: usize| (10..20).contains(&(at / 80)) && (10..20).contains(&(at % 80));
        (0..80 * 80).map(|at| if inside(at) { label } else { 0 }).collect()
    };
    let (prediction, rater) = (block(1), block(2));
    let grid = Grid::new([1, 80, 80], [1.0; 3]).unwrap();
    let of_class = |class: u8| {
        let mask = |labels: &[u8]| labels.iter().map(|&label| label == class).collect::<Vec<_>>();
        SurfaceDistances::new(&mask(&prediction), &mask(&rater), &grid).unwrap().nsd(1.0).unwrap()
    };
    assert_eq!([0, 1, 2, 3].map(of_class), [Some(1.0), Some(0.0), Some(0.0), None]);
}

#[test]
fn medpy_surface_distances() {
    let distances = |first: &[u8], second: &[u8], shape, spacing| {
        let mask = |labels: &[u8]| labels.iter().map(|&label| label > 0).collect::<Vec<_>>();
        SurfaceDistances::new(&mask(first), &mask(second), &Grid::new(shape, spacing).unwrap()).unwrap()
    };
    let pair = |first: &[u8], second: &[u8], spacing| {
        distances(first, second, [1, 1, 2], [1.0, 1.0, spacing]).assd().unwrap()
    };
    assert_close(pair(&[1, 0], &[1, 0], 1.0), 0.0, "identity");
    assert_close(pair(&[1, 0], &[0, 1], 1.0), 1.0, "distance");
    assert_close(pair(&[1, 0], &[0, 1], 2.0), 2.0, "spacing");
    let result = [1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0];
    let reference = [1, 1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];
    let there = distances(&result, &reference, [1, 4, 4], [1.0; 3]);
    let back = distances(&reference, &result, [1, 4, 4], [1.0; 3]);
    assert_eq!((there.assd(), there.hd95()), (back.assd(), back.hd95()), "symmetric");
    assert_close(there.assd().unwrap(), 0.37935706248589945, "ASSD");
    assert_close(dice(&result, &reference).unwrap(), 2.0 / 3.0, "Dice");
    // A cross and the square around it: no voxel of the cross's surface is off the square's surface.
    let cross = [0, 1, 0, 1, 1, 1, 0, 1, 0];
    assert_close(
        distances(&cross, &[1; 9], [1, 3, 3], [1.0; 3]).nsd(0.0).unwrap().unwrap(),
        8.0 / 12.0,
        "cross",
    );
}

/// The entries of the matrices of 1 − IoU, for maps that are 0 or 1 everywhere. Where a class is absent from both maps that
/// code has no value, and leaves the class out of means.
#[test]
fn probabilistic_unet_energy_distance_components() {
    let (zeros, ones) = ([0; 100], [1; 100]);
    let half: [u8; 100] = std::array::from_fn(|at| u8::from(at % 10 < 5));
    assert_close(iou(&ones, &ones), 1.0, "IoU of class 1");
    assert_close(iou(&ones, &zeros), 0.0, "IoU of class 1");
    assert_close(iou(&half, &zeros), 0.0, "IoU of class 1");
    let outside = |map: [u8; 100]| map.map(|label| 1 - label);
    assert_close(iou(&outside(half), &outside(zeros)), 0.5, "IoU of class 0");
    // Two classes beside a background that nobody marks: the mean of each pair over the classes that are there.
    let maps = |labels: [u8; 2]| labels.map(|label| planes(&[label; 100], 3));
    let (raters, samples) = (maps([2, 1]), maps([1, 2]));
    let found = PairwiseDistances::with(&samples, &raters, Distance::IouOfPresent).unwrap();
    for at in 0..2 {
        let mut between_sets = [1.0, 0.0];
        let mut within = [0.0, 1.0];
        if at == 1 {
            between_sets.reverse();
            within.reverse();
        }
        assert_eq!(found.sample_to_raters(at), between_sets);
        assert_eq!(found.sample_to_samples(at), within);
        assert_eq!(found.rater_to_raters(at), within);
    }
}

const SAMPLES: [[u8; 16]; 4] = [
    [0, 0, 1, 1, 0, 1, 1, 2, 0, 1, 2, 2, 0, 0, 0, 0],
    [0, 1, 1, 1, 0, 1, 1, 1, 0, 0, 1, 1, 0, 0, 0, 0],
    [0, 0, 0, 0, 0, 0, 2, 2, 0, 0, 2, 2, 0, 0, 0, 0],
    [0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 2, 2, 0, 0, 2, 2],
];
const RATERS: [[u8; 16]; 3] = [
    [0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 2, 2, 0, 0, 0, 0],
    [0, 1, 1, 1, 0, 1, 1, 2, 0, 1, 2, 2, 0, 0, 2, 2],
    [0, 0, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 0, 0, 0, 0],
];

/// What `calc_energy_distances` of the probabilistic U-Net gives for the classes 1 and 2, with all samples and with two.
#[test]
fn probabilistic_unet_energy_distance() {
    let maps = |maps: &[[u8; 16]]| maps.iter().map(|map| planes(map, 3)).collect::<Vec<_>>();
    let found = PairwiseDistances::with(&maps(&SAMPLES), &maps(&RATERS), Distance::IouOfPresent).unwrap();
    assert_close(found.ged().unwrap().squared, 0.13694334, "4 samples");
    assert_close(found.ged_at(2).unwrap().squared, 0.18110669, "2 samples");
}

/// What `generalised_energy_distance` and `variance_ncc_dist` of PHiSeg give for the same maps.
#[test]
fn phiseg_energy_distance_and_ncc() {
    let maps = |maps: &[[u8; 16]]| maps.iter().map(|map| planes(map, 3)).collect::<Vec<_>>();
    let found = PairwiseDistances::new(&maps(&SAMPLES), &maps(&RATERS)).unwrap();
    assert_close(found.ged().unwrap().squared, 0.11842482363315693, "GED²");
    let labels = |maps: &[[u8; 16]]| -> Vec<LabelMap> {
        maps.iter().map(|map| LabelMap::new(map.to_vec(), 3).unwrap()).collect()
    };
    let ncc = LabelFrequencies::of(&labels(&SAMPLES)).unwrap().s_ncc(&labels(&RATERS)).unwrap();
    assert_close(ncc.mean.unwrap(), 0.81812132, "S_NCC");
}
