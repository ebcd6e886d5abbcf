//! Promises of the synthetic sets.

use ssn_core::metrics::{PairStatistic, ged};
use ssn_core::{BitPlanes, LabelMap};

use super::*;

fn set(config: SyntheticConfig) -> Synthetic {
    Synthetic::new(config).unwrap()
}

fn planes(maps: &[Vec<u8>]) -> Vec<BitPlanes> {
    maps.iter().map(|labels| BitPlanes::new(&LabelMap::new(labels.clone(), 2).unwrap())).collect()
}

#[test]
fn a_case_is_a_function_of_seed_and_number() {
    let config = SyntheticConfig { cases: 5, ..SyntheticConfig::default() };
    let (first, again) = (set(config.clone()), set(SyntheticConfig { cases: 9, ..config.clone() }));
    let other = set(SyntheticConfig { seed: 1, ..config });
    for case in 0..5 {
        assert_eq!(first.load(case).unwrap(), again.load(case).unwrap());
        assert_ne!(first.load(case).unwrap().image, other.load(case).unwrap().image);
    }
    assert_ne!(first.load(0).unwrap().image, first.load(1).unwrap().image);
    assert_eq!((first.len(), first.id(2)), (5, "synthetic-00002"));
    assert!(first.load(5).is_err());
    // Further raters continue those of the set, and the image does not depend on how many there are.
    let many = set(SyntheticConfig { cases: 5, raters: 7, ..SyntheticConfig::default() }).load(3).unwrap();
    assert_eq!(many.raters[..4], first.load(3).unwrap().raters[..]);
    assert_eq!(many.raters[6], first.labels(3, 6));
    assert_eq!(many.image, first.load(3).unwrap().image);
}

#[test]
fn volumes_and_three_classes_work() {
    let set = set(SyntheticConfig { cases: 4, classes: 3, size: [32, 40, 48], ..SyntheticConfig::volume() });
    let mut seen = [0usize; 3];
    for index in 0..4 {
        let case = set.load(index).unwrap();
        assert_eq!((case.image.len(), case.raters.len()), (32 * 40 * 48, 4));
        let mask = case.mask.unwrap();
        assert!(case.image.iter().all(|x| x.is_finite() && (-0.3..1.6).contains(x)));
        for labels in &case.raters {
            labels.iter().for_each(|&label| seen[label as usize] += 1);
            assert!(labels.iter().zip(&mask).all(|(label, mask)| *label == 0 || *mask == 1));
        }
    }
    assert!(seen[1] > 500 && seen[2] > 100, "{seen:?}");
}

#[test]
fn the_marginal_is_that_of_the_raters() {
    let set = set(SyntheticConfig { cases: 6, ..SyntheticConfig::default() });
    let draws = 2000;
    for case in 0..6 {
        let scene = set.scene(case);
        let exact = scene.marginal();
        let mut counts = vec![0u32; exact.len()];
        for labels in set.label_maps(case, 0..draws) {
            labels.iter().zip(&mut counts).for_each(|(label, count)| *count += u32::from(*label > 0));
        }
        // Five standard errors at ½.
        let error = 5.0 * 0.5 / (draws as f64).sqrt();
        for (count, exact) in counts.iter().zip(&exact) {
            assert!(
                (f64::from(*count) / draws as f64 - exact).abs() < error,
                "{count} of {draws}, not {exact}"
            );
        }
    }
}

/// Levels and sight of a rater are correlated between lesions as the settings say.
#[test]
fn raters_are_correlated_between_lesions_as_documented() {
    let set = set(SyntheticConfig { cases: 1, correlation: 0.6, ..SyntheticConfig::default() });
    let raters: Vec<Rater> = (0..20_000).map(|number| set.rater_of(0, 2, number)).collect();
    let correlation = |a: &dyn Fn(&Rater) -> f32, b: &dyn Fn(&Rater) -> f32| {
        raters.iter().map(|rater| a(rater) * b(rater)).sum::<f32>() / raters.len() as f32
    };
    let sight = correlation(&|rater| rater.reluctance[0], &|rater| rater.reluctance[1]);
    let unrelated = correlation(&|rater| rater.reluctance[0], &|rater| rater.level[0]);
    let level = correlation(&|rater| rater.level[0], &|rater| rater.level[1]);
    assert!((sight - 0.6).abs() < 0.04 && unrelated.abs() < 0.04, "{sight} {unrelated}");
    // Cutting levels off at 2.2 takes about a twentieth of their variance.
    assert!((level - 0.58).abs() < 0.05, "{level}");
    let spiky = raters.iter().filter(|rater| rater.spiky).count();
    assert!((9600..10_400).contains(&spiky), "{spiky}");
}

/// Independent pixels with the exact marginal are far from the raters; further raters are not.
#[test]
fn independent_pixels_cannot_be_the_raters() {
    let set = set(SyntheticConfig { cases: 20, ..SyntheticConfig::default() });
    let (mut joint, mut independent) = (0.0, 0.0);
    for case in 0..20 {
        let raters = planes(&set.label_maps(case, 0..30));
        let further = planes(&set.label_maps(case, 30..60));
        let marginal = set.scene(case).marginal();
        let mut stream = Stream::new(case as u64, Purpose::Patch, 0);
        let pixels: Vec<Vec<u8>> =
            (0..30).map(|_| marginal.iter().map(|&p| u8::from(stream.chance(p))).collect()).collect();
        joint += ged(&further, &raters, PairStatistic::V).unwrap().squared / 20.0;
        independent += ged(&planes(&pixels), &raters, PairStatistic::V).unwrap().squared / 20.0;
    }
    println!("GED² of further raters {joint:.4}, of independent pixels {independent:.4}");
    assert!(joint < 0.05 && independent > 5.0 * joint, "{joint} {independent}");
}

/// Raters disagree in presence, extent and style.
#[test]
fn raters_differ_in_presence_extent_and_style() {
    let set = set(SyntheticConfig { cases: 60, lesions: 1, ..SyntheticConfig::default() });
    let (mut some_empty, mut all_empty) = (0, 0);
    for case in 0..60 {
        let maps = set.label_maps(case, 0..4);
        let empty = maps.iter().filter(|labels| labels.iter().all(|&label| label == 0)).count();
        some_empty += usize::from((1..4).contains(&empty));
        all_empty += usize::from(empty == 4);
    }
    assert!((10..40).contains(&some_empty) && all_empty < 12, "{some_empty} {all_empty}");

    let scene = (0..60).map(|case| set.scene(case)).find(|scene| scene.lesions[0].rim > 0.3).unwrap();
    let volume = |level: f32, spiky: bool| {
        let rater = Rater { spiky, reluctance: vec![-9.0], level: vec![level], core_level: vec![0.0] };
        scene.labels(&rater).iter().filter(|&&label| label > 0).count()
    };
    assert!(volume(1.0, false) as f64 > 1.3 * volume(-1.0, false) as f64);
    assert!(volume(0.0, true) > volume(0.0, false));
}

#[test]
fn settings_survive_a_config_file_and_are_checked() {
    let config = SyntheticConfig { classes: 3, ..SyntheticConfig::volume() };
    let text = toml::to_string(&config).unwrap();
    assert_eq!(toml::from_str::<SyntheticConfig>(&text).unwrap(), config);
    assert_eq!(toml::from_str::<SyntheticConfig>("").unwrap(), SyntheticConfig::default());
    assert!(toml::from_str::<SyntheticConfig>("classe = 3").is_err());
    for wrong in [
        SyntheticConfig { classes: 4, ..config.clone() },
        SyntheticConfig { size: [4, 64, 64], ..config.clone() },
        SyntheticConfig { faint: f64::NAN, ..config.clone() },
        SyntheticConfig { cases: 0, ..config },
    ] {
        assert!(Synthetic::new(wrong).is_err());
    }
}
